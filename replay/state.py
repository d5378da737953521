"""A cell between two rounds, folded as recorded: what the next round is derived from. Never judges an event."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ..events.model import EvidenceCarried, KernelGated, Policy, RoundJudged, SourcesSwept
from .evolution import Evidence
from .grammar import Round
from .matching import RuleKey

NO_FAULT_OF_THE_SOURCE = frozenset(
    prefix + fault
    for fault in ("timeout", "worker_lost", "request_failed", "context_lost")
    for prefix in ("", "gate: ")
)


class State:
    """A cell between two rounds: the incumbent, what is known of each source, and the evidence so far.

    `fruitless` counts by (rule, incumbent) the rounds that were not FASTER; `timed` has (blocks, incumbent, candidate) of a rule's
    rounds with an interval; `lost` has by incumbent what was tried on it, `refused` what the last gate of a source refused. By source: `alone` is the samples of its latest noise floor, `reports` the report of its latest gate that passed.
    """

    def __init__(self, carried: Iterable[EvidenceCarried] = (), policy: Policy | None = None) -> None:
        self.incumbent = ""
        self.launches: dict[str, str] = {}
        self.signals: dict[str, dict[str, float]] = {}
        self.floors: dict[str, float] = {}
        self.alone: dict[str, str] = {}
        self.reports: dict[str, str] = {}
        self.inert: set[tuple[str, str]] = set()
        self.unserved: set[tuple[str, str]] = set()
        self.refused: set[str] = set()
        self.lost: dict[str, set[str]] = {}
        self.evidence = Evidence(carried, policy)
        self.judged = 0
        self.fruitless: dict[tuple[str, str], int] = {}
        self.timed: dict[RuleKey, list[tuple[int, str, str]]] = {}

    def remember(self, round_: Round) -> None:
        """What the next round knows of this round's sources."""
        gated, profiled, floor = round_.gated, round_.profiled, round_.floor
        if round_.unserved is not None:
            self.unserved.add((round_.unserved.prescription, round_.unserved.incumbent))
        self._try(round_)
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

    def _try(self, round_: Round) -> None:
        """What of this round's sources no generator may offer again for the incumbent that it began with."""
        gated, judged = round_.gated, round_.judged
        if gated is not None:
            passing = gated.outcome == "passed" or gated.outcome in NO_FAULT_OF_THE_SOURCE
            (self.refused.discard if passing else self.refused.add)(gated.source)
        lost = self.lost.setdefault(self.incumbent, set())
        if judged is not None and judged.reason not in NO_FAULT_OF_THE_SOURCE:
            lost.add(judged.candidate)
        beaten = judged.candidate if judged is not None and judged.verdict in ("SAME", "SLOWER") else None
        for _, swept in round_.offers:
            if isinstance(swept, SourcesSwept):
                best = None if swept.chosen is None else swept.sources[swept.chosen]
                if best is None or best == beaten:
                    lost.update(swept.sources)

    def tried(self) -> frozenset[str]:
        """What was tried on the incumbent, and what a gate of the cell refused."""
        return frozenset(self.refused | self.lost.get(self.incumbent, set()))

    def offered(self, prescriptions: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the registered prescriptions that were not found unserved on the incumbent."""
        return tuple(p for p in prescriptions if (p, self.incumbent) not in self.unserved)

    def account(self, judged: RoundJudged) -> None:
        """What a verdict leaves beside its credit: inert firings, fruitless rounds, what the round took to time."""
        self.judged += 1
        if judged.inert:
            self.inert.add((judged.rule, judged.incumbent))
        if judged.verdict != "FASTER":
            place = (judged.rule, judged.incumbent)
            self.fruitless[place] = self.fruitless.get(place, 0) + 1
        if judged.interval is not None:
            taken = (judged.interval.blocks, judged.incumbent, judged.candidate)
            self.timed.setdefault((judged.rule, judged.rule_version), []).append(taken)

    def ns(self, source: str) -> int:
        """The latest median of a source in whole nanoseconds; 0 where it was never timed."""
        top, bottom = self.signals.get(source, {}).get("time_us", 0.0).as_integer_ratio()
        return max(0, round(Fraction(1000 * top, bottom)))

    def report(self, source: str, now: KernelGated) -> str | None:
        """The report of a source's latest gate that passed, this round's `now` being one."""
        return now.report if now.source == source else self.reports.get(source)
