"""A cell's rounds as a course, recorded or played, and where two courses part. Never asks a rule."""

from __future__ import annotations

from typing import cast

import msgspec

from ..events.model import RoundJudged
from .grammar import Round, Script
from .side import ended


class Step(msgspec.Struct, frozen=True):
    """One round: what fired and what came of it. `of` and `of_round` name the recorded round that answers it."""

    round: int
    rule: str
    version: int
    verdict: str
    inert: bool
    credit: str
    incumbent: str
    of: str
    of_round: int


class Unanswered(msgspec.Struct, frozen=True):
    """A round that the policy asks for and the ledger cannot answer."""

    round: int
    rule: str
    version: int
    prescription: str
    incumbent: str


class Course(msgspec.Struct, frozen=True):
    """Rounds in order, the end (None: none in the record, or not known), and the time of the last incumbent."""

    steps: tuple[Step, ...]
    end: str | None
    incumbent: str
    time_us: float | None

    @property
    def reached(self) -> int:
        """The round that made the last incumbent; 0 where it is the start."""
        won = [step.round for step in self.steps if step.verdict == "FASTER"]
        return won[-1] if won else 0


class CellPlayed(msgspec.Struct, frozen=True):
    """One cell as recorded and under the policy.

    `parted` is the first round whose rules differ (an end counts as one). `saved`: rounds fewer than recorded (below 0: more),
    None where either course has no end. `unused`: recorded rounds that the policy does not come to. `fault`: why it could not be played.
    """

    cell: str
    recorded: Course
    played: Course
    parted: int | None
    saved: int | None
    unused: tuple[int, ...]
    unanswered: Unanswered | None
    fault: str | None = None


def step(number: int, rule: str, version: int, name: str, round_: Round) -> Step:
    """A round of a course, answered by the recorded `round_` of the cell `name`."""
    judged = cast(RoundJudged, round_.judged)
    return Step(
        number, rule, version, judged.verdict, judged.inert, judged.credit, judged.next_incumbent, name, judged.round
    )


def recorded_course(stream: str, own: Script) -> Course:
    """A cell's course as it was recorded."""
    rounds = ended(own)
    judged = [r for r in rounds if r.judged is not None]
    steps = tuple(step(r.judged.round, r.judged.rule, r.judged.rule_version, stream, r) for r in judged if r.judged)
    incumbent = steps[-1].incumbent if steps else rounds[0].attempted.incumbent if rounds else ""
    profiles = [r.profiled for r in rounds if r.profiled is not None and r.profiled.source == incumbent]
    time_us = profiles[-1].signals.get("time_us") if profiles else None
    return Course(steps, _end(own), incumbent, time_us)


def _end(own: Script) -> str | None:
    if own.stopped is None:
        return None
    stopped = own.stopped[1]
    return stopped.reason if stopped.rule is None else f"{stopped.reason} {stopped.rule}"


def parted(recorded: Course, played: Course, unanswered: Unanswered | None) -> int | None:
    """The first round in which another rule fires, or in which one course ends and the other does not."""
    ours = [(s.rule, s.version) for s in recorded.steps]
    theirs = [(s.rule, s.version) for s in played.steps]
    if unanswered is not None:
        theirs.append((unanswered.rule, unanswered.version))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if one != other:
            return number
    if len(ours) == len(theirs):
        return None if None in (recorded.end, played.end) or recorded.end == played.end else len(ours) + 1
    if len(ours) < len(theirs) and recorded.end is None:
        return None  # the record has only got less far
    return min(len(ours), len(theirs)) + 1
