"""Rules as values: what one demands, what it predicts, and what was seen when the table was asked. Never asks one."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from .base import Value

Operator = Literal["<", "<=", ">", ">=", "=="]


class Clause(Value, frozen=True):
    """One comparison of a rule: `signal op threshold`; abstains where the signal is missing."""

    signal: str
    op: Operator
    threshold: float


class Guard(Value, frozen=True):
    """A demand on the chip: peak(`over`) / peak(`under`) must reach `at_least`; a path that the chip lacks fails it."""

    over: str
    under: str
    at_least: float


class Gain(Value, frozen=True):
    """Predicted speed-up: min(cap, form), form one of: constant = cap; signal; inverse_signal = 1 / signal; peak_ratio;
    amdahl = 1 / ((1 - s) + s / h), h = `signal` (at least 1), s = the signal `share` (1 where that is absent or not named).
    """

    form: Literal["constant", "signal", "inverse_signal", "peak_ratio", "amdahl"]
    cap: float
    signal: str | None = None
    over: str | None = None
    under: str | None = None
    share: str | UnsetType = UNSET


class Rule(Value, frozen=True):
    """A row of the rule table. Lower tiers are asked first; a rule with `stop` ends the cell instead of prescribing."""

    name: str
    version: int
    tier: int
    position: int
    stop: bool
    prescription: str | None
    clauses: tuple[Clause, ...]
    guards: tuple[Guard, ...]
    contracts: tuple[str, ...]
    gain: Gain
    metrics: tuple[str, ...]
    origin: str
    rationale: str


class Context(Value, frozen=True):
    """Where evidence counts: a retirement in one context says nothing about another."""

    chip: str
    contract: str
    language: str
    family: str
    structure: str


class ClauseSeen(Value, frozen=True):
    """A clause and the value that it saw; satisfied by it, but in the arm `random`."""

    signal: str
    op: Operator
    threshold: float
    value: float


class Abstained(Value, frozen=True):
    """A rule that could not be decided, and the signals it missed."""

    rule: str
    missing: tuple[str, ...]


class Blocked(Value, frozen=True):
    """A rule whose clauses may hold but which may not fire: guard, contract, no_variant, retired, spent or tabu."""

    rule: str
    reason: Literal["guard", "contract", "no_variant", "retired", "spent", "tabu"]
