"""The order of an examination's events (FORMAT.md section 7): a stream sorted by kind. Never judges a value."""

from __future__ import annotations

import msgspec

from ..events.model import (
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    ExaminationStated,
    KernelExamined,
    PairCompared,
    Rule,
    RulesAnswered,
    RuleSeeded,
    RunStopped,
    StatementReproduced,
    StaticRulesSeen,
)
from .findings import Findings
from .grammar import OF_CELL, OF_EXAM, OF_LEDGER, OF_RUN
from .integrity import Item, Scanned
from .runs import check_versions, is_examination

# Place in the stream; an event may not come after one of a higher place, and those of `_ONCE` come once.
_PLACES: dict[type[Event], int] = {
    ExaminationRegistered: 0,
    RuleSeeded: 1,
    DeviceCalibrated: 2,
    KernelExamined: 3,
    RulesAnswered: 3,
    PairCompared: 3,
    CountersCompared: 3,
    StaticRulesSeen: 3,
    StatementReproduced: 4,
    ExaminationStated: 5,
    RunStopped: 6,
}
_ONCE = (ExaminationRegistered, DeviceCalibrated, ExaminationStated, RunStopped)


class ExamEvents(msgspec.Struct):
    """One examination's events by kind, each beside its seq, in order."""

    run: str
    first: int
    registered: tuple[int, ExaminationRegistered] | None = None
    rules: list[tuple[int, Rule]] = []
    device: tuple[int, DeviceCalibrated] | None = None
    body: list[Item] = []
    examined: dict[str, tuple[int, KernelExamined]] = {}
    answered: dict[str, tuple[int, RulesAnswered]] = {}
    reproduced: list[tuple[int, StatementReproduced]] = []
    stated: tuple[int, ExaminationStated] | None = None
    stopped: tuple[int, RunStopped] | None = None

    def table(self) -> tuple[Rule, ...]:
        """The seeded rule table."""
        return tuple(rule for _, rule in self.rules)


def sort_examinations(scanned: Scanned, findings: Findings) -> list[ExamEvents]:
    """The examinations among the streams, in order of their first event; what does not fit is reported and left out."""
    return [
        _sorted(stream, items, findings)
        for stream, items in scanned.streams.items()
        if items and is_examination(stream)
    ]


def _sorted(run: str, items: list[Item], findings: Findings) -> ExamEvents:
    exam, place, seen = ExamEvents(run, items[0][0]), 0, set[type[Event]]()
    for seq, event in items:
        kind = event.__class__
        if getattr(event, "run", run) != run:
            findings.add(seq, "stream", f"examination {run}", getattr(event, "run", None))
        if kind not in _PLACES:
            _misplaced(seq, event, findings)
            continue
        if exam.registered is None and kind is not ExaminationRegistered:
            findings.add(seq, "order of events", "ExaminationRegistered first", kind.__name__)
        if _PLACES[kind] < place or (kind in _ONCE and kind in seen):
            findings.add(seq, "order of events", "the order of FORMAT.md section 7", f"{kind.__name__} here")
        place = max(place, _PLACES[kind])
        if kind not in _ONCE or kind not in seen:
            _take(exam, seq, event)
        seen.add(kind)
    check_versions(exam.rules, findings)
    _check_answers(exam, findings)
    return exam


def _misplaced(seq: int, event: Event, findings: Findings) -> None:
    if isinstance(event, (*OF_RUN, *OF_CELL, *OF_EXAM, *OF_LEDGER)):
        findings.add(seq, "stream", "events of an examination", type(event).__name__)
    else:
        findings.add(seq, "event kind not understood", "an event type of FORMAT.md", type(event).__name__)


def _take(exam: ExamEvents, seq: int, event: Event) -> None:
    match event:
        case ExaminationRegistered():
            exam.registered = (seq, event)
        case RuleSeeded():
            exam.rules.append((seq, event.rule))
        case DeviceCalibrated():
            exam.device = (seq, event)
        case StatementReproduced():
            exam.reproduced.append((seq, event))
        case ExaminationStated():
            exam.stated = (seq, event)
        case RunStopped():
            exam.stopped = (seq, event)
        case KernelExamined():
            exam.examined.setdefault(event.subject, (seq, event))
            exam.body.append((seq, event))
        case RulesAnswered():
            exam.answered.setdefault(event.subject, (seq, event))
            exam.body.append((seq, event))
        case _:
            exam.body.append((seq, event))


def _check_answers(exam: ExamEvents, findings: Findings) -> None:
    """A kernel that passed and was timed is followed by what the rules say of it, and nothing else is."""
    due: tuple[int, str] | None = None
    for seq, event in exam.body:
        answers = event.subject if isinstance(event, RulesAnswered) else None
        if due is not None and due != (seq, answers):
            findings.add(due[0] - 1, "order of events", f"RulesAnswered of {due[1]} next", type(event).__name__)
        if answers is not None and due != (seq, answers):
            findings.add(seq, "order of events", "RulesAnswered right after the subject that passed", answers)
        timed = isinstance(event, KernelExamined) and event.outcome == "passed" and event.samples is not None
        due = (seq + 1, event.subject) if timed and isinstance(event, KernelExamined) else None
    if due is not None:
        findings.add(due[0] - 1, "order of events", f"RulesAnswered of {due[1]} next", "the end of the stream")
