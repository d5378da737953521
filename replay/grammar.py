"""The order of a cell's events (FORMAT.md section 4): a stream parsed into rounds and an end. Never judges a value."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..events.model import (
    ClaimStated,
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    ExaminationStated,
    GeneratorAsked,
    HeadToHead,
    KernelExamined,
    KernelGated,
    KernelGenerated,
    LedgerSealed,
    NoiseFloorMeasured,
    PairCompared,
    PrescriptionUnserved,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    RuleFired,
    RulePromoted,
    RuleRetired,
    RulesAnswered,
    RuleSeeded,
    RunRegistered,
    RunStopped,
    SourcesSwept,
    StaticRulesSeen,
    TilesSwept,
)
from .findings import Findings

Item = tuple[int, Event]


class Round(msgspec.Struct):
    """One attempt of a round: its events, each beside its seq in `seqs`; `offers` is what the chain's generators were asked, with their sweeps."""

    attempted: RoundAttempted
    seqs: dict[str, int]
    interrupted: RoundInterrupted | None = None
    fired: RuleFired | None = None
    swept: TilesSwept | None = None
    generated: KernelGenerated | None = None
    gated: KernelGated | None = None
    profiled: Profiled | None = None
    floor: NoiseFloorMeasured | None = None
    judged: RoundJudged | None = None
    retired: RuleRetired | None = None
    promoted: RulePromoted | None = None
    unserved: PrescriptionUnserved | None = None
    offers: list[tuple[int, GeneratorAsked | SourcesSwept]] = []

    @property
    def seq(self) -> int:
        """Where the attempt begins."""
        return self.seqs["attempted"]

    def bare(self) -> bool:
        """Whether nothing followed the attempt event."""
        return len(self.seqs) == 1


class Script(msgspec.Struct):
    """A cell's stream in order: attempts, then the end, if it has come."""

    rounds: list[Round]
    last_firing: tuple[int, RuleFired] | None = None
    stopped: tuple[int, RunStopped] | None = None


# Place within a round that an event must come before, the place that it takes, and its slot. An interruption is possible
# only right after the attempt and what was asked in it, and closes it.
_CLOSED = 100
_PLACES: dict[type[Event], tuple[int, int, str]] = {
    RoundInterrupted: (2, _CLOSED, "interrupted"),
    RuleFired: (1, 2, "fired"),
    TilesSwept: (3, 3, "swept"),
    KernelGenerated: (4, 4, "generated"),
    PrescriptionUnserved: (3, _CLOSED, "unserved"),
    KernelGated: (5, 5, "gated"),
    Profiled: (6, 6, "profiled"),
    NoiseFloorMeasured: (7, 7, "floor"),
    RoundJudged: (8, 8, "judged"),
    RuleRetired: (9, 9, "retired"),
    RulePromoted: (10, 10, "promoted"),
}
# What generators were asked stands behind the firing or, of an attempt that was cut off, behind the attempt alone.
_ASKED, _FIRED = 1, 2
_NOWHERE = (0, 0, "")
OF_RUN: tuple[type[Event], ...] = (RunRegistered, RuleSeeded, DeviceCalibrated, HeadToHead, ClaimStated)
OF_EXAM: tuple[type[Event], ...] = (
    ExaminationRegistered,
    KernelExamined,
    RulesAnswered,
    PairCompared,
    CountersCompared,
    StaticRulesSeen,
    ExaminationStated,
)
OF_CELL: tuple[type[Event], ...] = (RoundAttempted, *_PLACES, GeneratorAsked, SourcesSwept, RunStopped)
OF_LEDGER: tuple[type[Event], ...] = (LedgerSealed,)
_START = ("generated", "gated")
_ROUND = ("fired", "generated", "gated", "judged")
_NEVER_IN_START = ("fired", "swept", "judged", "retired", "promoted", "unserved")


def parse(items: Sequence[Item], findings: Findings) -> Script:
    """Sort a cell's events into rounds; whatever does not fit is reported and left out."""
    script = Script([])
    now: Round | None = None
    place = _CLOSED
    for seq, event in items:
        before, taken, slot = _PLACES.get(event.__class__, _NOWHERE)
        if place < before and now is not None:
            place = taken
            setattr(now, slot, event)
            now.seqs[slot] = seq
        elif isinstance(event, GeneratorAsked) and place <= _FIRED and now is not None:
            place = max(place, _ASKED)
            _offer(now, seq, event)
        elif isinstance(event, SourcesSwept) and place == _FIRED and now is not None:
            _offer(now, seq, event)
        elif isinstance(event, RoundAttempted) and script.stopped is None:
            now, place = Round(event, {"attempted": seq}), 0
            script.rounds.append(now)
        else:
            place = _CLOSED if isinstance(event, RunStopped) else place
            _take_end(script, seq, event, findings)
    _check_whole(script, findings)
    return script


def _offer(now: Round, seq: int, event: GeneratorAsked | SourcesSwept) -> None:
    now.offers.append((seq, event))
    now.seqs[f"offer {len(now.offers)}"] = seq


def _take_end(script: Script, seq: int, event: Event, findings: Findings) -> None:
    """An event that has no place in the round at hand: the end of the cell, or a finding."""
    whole = bool(script.rounds) and _whole(script.rounds[-1])
    if script.stopped is not None:
        findings.add(seq, "order of events", "nothing after the cell's RunStopped", type(event).__name__)
    elif isinstance(event, RunStopped):
        script.stopped = (seq, event)
        if event.cell is None:
            findings.add(seq, "stream", "the end of a cell", "the end of a run")
    elif isinstance(event, RuleFired) and whole and script.last_firing is None:
        script.last_firing = (seq, event)
    elif isinstance(event, (*OF_RUN, *OF_EXAM, *OF_LEDGER)):
        findings.add(seq, "stream", "events of a cell", type(event).__name__)
    elif isinstance(event, OF_CELL):
        findings.add(seq, "order of events", "the order of FORMAT.md section 4", f"{type(event).__name__} here")
    else:
        findings.add(seq, "event kind not understood", "an event type of FORMAT.md", type(event).__name__)


def _whole(round_: Round) -> bool:
    if round_.attempted.round == 0:
        return round_.gated is not None
    return round_.judged is not None or round_.unserved is not None


def _check_together(round_: Round, findings: Findings) -> None:
    """What follows the attempt is one transaction, so nothing else stands between."""
    seqs = list(round_.seqs.values())[1:]
    if seqs and seqs[-1] - seqs[0] != len(seqs) - 1:
        findings.add(seqs[0], "order of events", "a round in one transaction", f"its events spread to {seqs[-1]}")


def _check_whole(script: Script, findings: Findings) -> None:
    """Every attempt but a bare last one has all that its kind demands."""
    for round_ in script.rounds:
        if round_.interrupted is not None:
            continue
        last = round_ is script.rounds[-1] and script.stopped is None
        if round_.bare() and last:
            continue
        start = round_.attempted.round == 0
        needed = _START if start else _ROUND if round_.unserved is None else ("fired",)
        if start and round_.gated is not None and round_.gated.outcome == "passed":
            needed = (*_START, "profiled", "floor")
        _check_together(round_, findings)
        for slot in needed:
            if slot not in round_.seqs:
                findings.add(round_.seq, "order of events", f"{slot} in round {round_.attempted.round}", "absent")
        for slot in ("profiled", "floor") if start and "profiled" not in needed else ():
            if slot in round_.seqs:
                findings.add(round_.seqs[slot], "order of events", "no measurement of an unfit start", slot)
        for slot in _NEVER_IN_START if start else ():
            if slot in round_.seqs:
                findings.add(round_.seqs[slot], "order of events", "round 0 without rules and verdicts", slot)
        for at, event in round_.offers if start else ():
            findings.add(at, "order of events", "round 0 without generators", type(event).__name__)
    if script.last_firing is not None and script.stopped is None:
        findings.add(
            script.last_firing[0], "order of events", "RunStopped after a stop rule's firing", "end of the stream"
        )
