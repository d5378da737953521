"""What becomes of rules by their outcomes, and by those of another ledger. Never decides it."""

from __future__ import annotations

from .base import Event, Value
from .registration import Cell
from .rules import Context, Rule


class Separation(Value, frozen=True):
    """Successes and failures at which a rule's clauses hold (kept), and at which they do not (lost, avoided)."""

    kept_successes: int
    kept_failures: int
    lost_successes: int
    avoided_failures: int


class RuleRetired(Event, frozen=True, tag=True):
    """A rule silenced in one context by its recorded failures."""

    cell: Cell
    rule: str
    rule_version: int
    context: Context
    successes: int
    failures: int
    confidence: float
    firings: tuple[str, ...]


class RulePromoted(Event, frozen=True, tag=True):
    """A rule that is asked before the unpromoted ones of its tier, by evidence pooled over contexts."""

    cell: Cell
    rule: str
    rule_version: int
    successes: int
    failures: int
    confidence: float
    firings: tuple[str, ...]


class RuleProposed(Event, frozen=True, tag=True):
    """A rule suggested by another ledger's outcomes; may not fire until admitted. `parent` names the rule that it narrows.

    `learnt` counts (problem, incumbent) of the half that it was learnt from, `shadow` rounds of the half that it was not.
    """

    run: str
    rule: Rule
    parent: str | None
    learnt: Separation
    shadow: Separation


class RuleAdmitted(Event, frozen=True, tag=True):
    """A proposed rule that passed its shadow test: from here on a row of the run's table."""

    run: str
    rule: str
    rule_version: int


class EvidenceCarried(Event, frozen=True, tag=True):
    """What another ledger says of a rule in one context: the problems that it helped at least once, and those that it never did."""

    run: str
    rule: str
    rule_version: int
    context: Context
    helped: tuple[str, ...]
    failed: tuple[str, ...]
