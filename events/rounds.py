"""The course of a round, from the attempt to its verdict or another end. Never judges one."""

from __future__ import annotations

from typing import Literal

from .base import Event, Verdict
from .measurements import Interval
from .registration import Cell
from .rules import Abstained, Blocked, ClauseSeen, Context

Credit = Literal["success", "failure", "neutral"]


class RoundAttempted(Event, frozen=True, tag=True):
    """Committed before the first sample of a round, so that no round can be dropped unseen. Round 0 profiles the start."""

    cell: Cell
    round: int
    attempt: int
    incumbent: str


class RoundInterrupted(Event, frozen=True, tag=True):
    """A neutral end without a verdict: the attempt was cut off (kill, lost worker) and moves no confidence."""

    cell: Cell
    round: int
    attempt: int
    reason: str


class RuleFired(Event, frozen=True, tag=True):
    """The rule that fires on the incumbent's signals, with its evidence; `firing` is the id that credit goes to."""

    cell: Cell
    round: int
    firing: str
    rule: str
    rule_version: int
    prescription: str | None
    incumbent: str
    context: Context
    clauses: tuple[ClauseSeen, ...]
    abstained: tuple[Abstained, ...]
    blocked: tuple[Blocked, ...]
    predicted_gain: float


class PrescriptionUnserved(Event, frozen=True, tag=True):
    """The end of a round in which no generator had a candidate: nobody is credited, and this incumbent is not prescribed it again."""

    cell: Cell
    round: int
    attempt: int
    firing: str
    rule: str
    rule_version: int
    prescription: str
    incumbent: str
    reason: str


class RoundJudged(Event, frozen=True, tag=True):
    """The verdict of a round and whom it credits."""

    cell: Cell
    round: int
    attempt: int
    firing: str
    rule: str
    rule_version: int
    candidate: str
    incumbent: str
    verdict: Verdict
    reason: str
    inert: bool
    interval: Interval | None
    margin: float | None
    credit: Credit
    next_incumbent: str
