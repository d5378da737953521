"""A cell between two rounds, folded as recorded: what the next round is derived from. Never judges an event."""

from __future__ import annotations

from ..events.model import KernelGated
from .evolution import Evidence
from .grammar import Round


class State:
    """A cell between two rounds: the incumbent, what is known of each source, and the evidence so far.

    By source: `alone` is the samples of its latest noise floor, `reports` the report of its latest gate that passed.
    """

    def __init__(self) -> None:
        self.incumbent = ""
        self.launches: dict[str, str] = {}
        self.signals: dict[str, dict[str, float]] = {}
        self.floors: dict[str, float] = {}
        self.alone: dict[str, str] = {}
        self.reports: dict[str, str] = {}
        self.inert: set[tuple[str, str]] = set()
        self.unserved: set[tuple[str, str]] = set()
        self.evidence = Evidence()

    def remember(self, round_: Round) -> None:
        """What the next round knows of this round's sources."""
        gated, profiled, floor = round_.gated, round_.profiled, round_.floor
        if round_.unserved is not None:
            self.unserved.add((round_.unserved.prescription, round_.unserved.incumbent))
        if gated is not None and gated.launches is not None:
            self.launches[gated.source] = gated.launches
        if gated is not None and gated.outcome == "passed":
            self.reports[gated.source] = gated.report
        if profiled is not None:
            self.signals[profiled.source] = profiled.signals
            self.launches[profiled.source] = profiled.launches
        if floor is not None:
            self.floors[floor.source] = floor.floor
            self.alone[floor.source] = floor.samples

    def offered(self, prescriptions: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the registered prescriptions that were not found unserved on the incumbent."""
        return tuple(p for p in prescriptions if (p, self.incumbent) not in self.unserved)

    def report(self, source: str, now: KernelGated) -> str | None:
        """The report of a source's latest gate that passed, this round's `now` being one."""
        return now.report if now.source == source else self.reports.get(source)
