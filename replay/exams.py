"""An examination walked from its registration to its end: what is there, how often and when, folded as recorded. Never re-derives."""

from __future__ import annotations

import msgspec

from ..events.model import CounterRow, CountersCompared, KernelExamined, PairCompared, StaticRulesSeen, SubjectDeclared
from .exam_derive import Matrix, Pair, matrix
from .exam_grammar import ExamEvents
from .findings import Findings
from .reproduced import StatementRow, check_complete, origin_of, rows, sides_of


class SubjectRow(msgspec.Struct, frozen=True):
    """One examined kernel, as recorded."""

    subject: str
    half: str
    outcome: str
    tier: str | None
    time_us: float | None
    fires: tuple[str, ...]


class PairRow(msgspec.Struct, frozen=True):
    """One pair: its registered truth and its comparisons by verdict, as recorded."""

    pair: str
    subject: str
    truth: str
    times: int
    verdicts: dict[str, int]


class ExamView(msgspec.Struct, frozen=True):
    """One examination, folded as recorded."""

    exam: str
    purpose: str
    stopped: str | None
    subjects: tuple[SubjectRow, ...]
    pairs: tuple[PairRow, ...]
    matrices: tuple[Matrix, ...]
    compared: int
    within: int
    ncu_rules: int
    figures: dict[str, float]
    origin: str | None = None
    statements: tuple[StatementRow, ...] = ()


class Fold:
    """An examination's events counted in order; whatever is not registered, comes twice or too early is reported."""

    def __init__(self, exam: ExamEvents, findings: Findings) -> None:
        self._exam, self._findings = exam, findings
        registered = self._registered = None if exam.registered is None else exam.registered[1]
        self.subjects: dict[str, SubjectDeclared] = {}
        self.pairs: dict[str, Pair] = {}
        for subject in () if registered is None else registered.subjects:
            self.subjects.setdefault(subject.name, subject)
        for pair in () if registered is None else registered.pairs:
            self.pairs.setdefault(pair.name, Pair(pair))
        self._sides: dict[str, set[str]] = {}
        if registered is not None and origin_of(registered) is not None:
            for name, sides in sides_of(registered).items():
                self._sides[name] = {subject.name for subject in sides if subject is not None}
        self.rows: list[CounterRow] = []
        self._seen: set[tuple[type, str]] = set()
        for seq, event in exam.body:
            self._take(seq, event)
        self._check_end()

    def _take(self, seq: int, event: object) -> None:
        match event:
            case KernelExamined() | CountersCompared() | StaticRulesSeen():
                self._once(seq, event)
                if isinstance(event, CountersCompared):
                    self.rows += event.rows
            case PairCompared():
                self._compared(seq, event)
            case _:
                pass

    def _once(self, seq: int, event: KernelExamined | CountersCompared | StaticRulesSeen) -> None:
        key, name = (type(event), event.subject), type(event).__name__
        if event.subject not in self.subjects:
            self._findings.add(seq, "order of events", "a registered subject", event.subject)
        if key in self._seen:
            self._findings.add(seq, "order of events", f"{name} once per subject", f"{event.subject} again")
        self._seen.add(key)
        if not isinstance(event, KernelExamined):
            self._check_after(seq, name, event.subject)

    def _check_after(self, seq: int, name: str, subject: str) -> None:
        found = self._exam.examined.get(subject)
        if found is None or found[0] > seq:
            self._findings.add(seq, "order of events", f"{name} after the KernelExamined of {subject}", "before it")

    def _compared(self, seq: int, event: PairCompared) -> None:
        pair = self.pairs.get(event.pair)
        if pair is None:
            self._findings.add(seq, "pair", "a registered pair", event.pair)
            return
        self._check_after(seq, "PairCompared", pair.declared.subject)
        for side in self._sides.get(event.pair, ()):
            self._check_after(seq, "PairCompared", side)
        if not self._due(pair):
            words = f"no comparison of {event.pair}: a side of it has no samples"
            self._findings.add(seq, "pair", words, f"comparison {event.number}")
        due = len(pair.verdicts) + 1
        self._findings.expect(seq, "pair", due, event.number, f"{event.pair} number")
        if due > pair.declared.times:
            self._findings.add(seq, "pair", f"{event.pair} {pair.declared.times} times", f"comparison {due}")
        pair.verdicts.append(event.verdict)

    def _check_end(self) -> None:
        """At the end every subject was examined, every pair compared as often as registered, and the figures are stated."""
        exam = self._exam
        ended = exam.stated or exam.stopped
        after = exam.body[0] if exam.body else ended
        if after is not None and (exam.device is None or exam.device[0] > after[0]):
            self._findings.add(
                after[0], "calibration", "DeviceCalibrated before the first kernel and the end", "absent"
            )
        if exam.stopped is not None:
            seq, stopped = exam.stopped
            due, found = ("plan completed", None, None), (stopped.reason, stopped.rule, stopped.cell)
            self._findings.expect(seq, "stop", due, found, "reason, rule, cell")
            if exam.stated is None:
                self._findings.add(seq, "order of events", "ExaminationStated before the end", "absent")
        elif exam.stated is not None:
            # Figures are stated in the transaction that ends it: without the end, that was cut off afterwards.
            self._findings.add(exam.stated[0], "order of events", "RunStopped after ExaminationStated", "absent")
        check_complete(self._registered, exam.reproduced, None if ended is None else ended[0], self._findings)
        if ended is not None:
            for what in self.missing():
                self._findings.add(
                    ended[0], "missing measurement", what, "absent, though the examination is at its end"
                )

    def missing(self) -> list[str]:
        """What the registration still asks for."""
        subjects = [f"subject {name}" for name in self.subjects if name not in self._exam.examined]
        short = [
            f"comparison {len(pair.verdicts) + 1} of pair {pair.name}, of {pair.declared.times}"
            for pair in self.pairs.values()
            if len(pair.verdicts) < pair.declared.times and self._due(pair)
        ]
        return subjects + short

    def _due(self, pair: Pair) -> bool:
        """In a reproduction a pair with a side that was refused, or could not be timed, is not compared."""
        examined = (self._exam.examined.get(side) for side in self._sides.get(pair.name, ()))
        return all(found is None or found[1].samples is not None for found in examined)

    def matrices(self) -> tuple[Matrix, ...]:
        """The confusion matrix of each registered half that has a name."""
        exam = self._exam
        passed = {
            n: a[1] for n, a in exam.answered.items() if n in exam.examined and exam.examined[n][1].outcome == "passed"
        }
        halves = dict.fromkeys(subject.half for subject in self.subjects.values() if subject.half)
        return tuple(matrix(half, self.subjects.values(), passed) for half in halves)

    def view(self) -> ExamView:
        """The examination for people."""
        exam = self._exam
        origin = None if self._registered is None else origin_of(self._registered)
        return ExamView(
            exam=exam.run,
            purpose="" if exam.registered is None else exam.registered[1].purpose,
            stopped=None if exam.stopped is None else exam.stopped[1].reason,
            subjects=tuple(self._subject(event) for _, event in exam.examined.values()),
            pairs=tuple(_pair(pair) for pair in self.pairs.values()),
            matrices=self.matrices(),
            compared=len(self.rows),
            within=sum(row.within for row in self.rows),
            ncu_rules=sum(isinstance(event, StaticRulesSeen) for _, event in exam.body),
            figures={} if exam.stated is None else exam.stated[1].figures,
            origin=None if origin is None else origin.head,
            statements=rows(self._registered, exam.reproduced),
        )

    def _subject(self, event: KernelExamined) -> SubjectRow:
        answered = self._exam.answered.get(event.subject)
        declared = self.subjects.get(event.subject)
        return SubjectRow(
            subject=event.subject,
            half="" if declared is None else declared.half,
            outcome=event.outcome,
            tier=event.tier,
            time_us=event.signals.get("time_us"),
            fires=() if answered is None else tuple(a.rule for a in answered[1].answers if a.answer == "fires"),
        )


def _pair(pair: Pair) -> PairRow:
    told = pair.declared
    return PairRow(told.name, told.subject, told.truth, told.times, pair.counts())
