"""How a run ends: stops, comparisons after the rounds, answers to claims, the seal. Never answers one."""

from __future__ import annotations

from typing import Literal

from .base import Event
from .measurements import Interval
from .registration import Cell


class RunStopped(Event, frozen=True, tag=True):
    """The end of a cell (or, with no cell, of the run), and why."""

    run: str
    cell: Cell | None
    reason: str
    rule: str | None


class HeadToHead(Event, frozen=True, tag=True):
    """Two kernels against each other after the rounds (A = left, B = right); equal sources need no samples."""

    run: str
    problem: str
    contract: str
    pool: str
    repetition: int
    comparison: str
    left: str
    right: str
    samples: str | None
    interval: Interval | None
    outcome: str
    origin_seq: int | None = None


class ClaimStated(Event, frozen=True, tag=True):
    """The answer to a registered claim: the median ratio of each repetition and whether all reach the bound."""

    run: str
    claim: str
    medians: tuple[float, ...]
    lowers: tuple[float, ...]
    answer: Literal["upheld", "not upheld", "unanswerable"]


class LedgerSealed(Event, frozen=True, tag=True):
    """A checkpoint over the first `size` events: RFC 6962 root and signed note."""

    size: int
    root: str
    note: str
