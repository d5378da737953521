"""Each event of an examination re-derived from its artifacts and compared (FORMAT.md section 7). Never reads a file."""

from __future__ import annotations

from typing import Any, cast

from ..events.model import (
    CountersCompared,
    DeviceCalibrated,
    ExaminationRegistered,
    KernelExamined,
    PairCompared,
    RulesAnswered,
    StaticRulesSeen,
    SubjectDeclared,
)
from . import derive_gate, derive_signals, exam_derive, statistic
from .artifacts import Counters, GateReport, Launches, Samples
from .calibration import Calibration
from .exam_grammar import ExamEvents
from .exams import Fold
from .extras import read_extras
from .findings import Findings
from .reproduced import check_answers, origin_of
from .reproduced import figures as statement_figures
from .shelf import Shelf


class Examiner:
    """Compares what an examination records with what follows from its artifacts, then goes on as recorded."""

    def __init__(
        self,
        exam: ExamEvents,
        registered: ExaminationRegistered,
        device: DeviceCalibrated,
        fold: Fold,
        clock: str | None,
        shelf: Shelf,
        findings: Findings,
    ) -> None:
        self._exam, self._registered, self._device, self._fold = exam, registered, device, fold
        self._clock, self._shelf, self._findings = clock, shelf, findings

    def all(self) -> None:
        """Every event of the body in order, then the figures."""
        for seq, event in self._exam.body:
            with self._findings.derivation(seq, type(event).__name__):
                match event:
                    case KernelExamined():
                        self._examined(seq, event, self._fold.subjects[event.subject])
                    case RulesAnswered():
                        self._answered(seq, event)
                    case PairCompared():
                        self._compared(seq, event)
                    case CountersCompared():
                        self._cross_checked(seq, event)
                    case StaticRulesSeen():
                        self._shelf.json(event.answers, cast("type[object]", Any))
                    case _:
                        pass
        compared: dict[str, list[PairCompared]] = {}
        for _, event in self._exam.body:
            if isinstance(event, PairCompared):
                compared.setdefault(event.pair, []).append(event)
        chip, answers = self._device.chip.name, self._exam.reproduced
        check_answers(self._registered, chip, compared, answers, self._findings)
        self._stated()

    # --- a kernel ---

    def _examined(self, seq: int, event: KernelExamined, subject: SubjectDeclared) -> None:
        expect = self._findings.expect
        report, untimed = (
            self._shelf.json(event.report, GateReport),
            {f"not timed: {fault}" for fault in statistic.FAULTS},
        )
        expect(seq, "gate", derive_gate.outcome(report, subject.problem, subject.contract), event.outcome, "outcome")
        if report.error is not None:
            expect(seq, "gate", report.error.text, event.reason, "reason")
        elif event.outcome == "passed":
            reasons = untimed if event.samples is None else {"within limits"}
            if event.reason not in reasons:
                self._findings.add(seq, "gate", f"one of {sorted(reasons)}", event.reason)
        for misfit in derive_gate.misfits(report, subject.problem, sized=self._clock == "cuda_event"):
            self._findings.add(seq, "gate", "a report of this problem", misfit)
        expect(seq, "seed", derive_gate.seed(self._registered.seed, subject.source, 1), report.seed)
        if event.outcome == "passed" and event.samples is not None:
            self._measured(seq, event, subject)
        else:
            found = (event.samples, event.counters, event.tier, event.floor, event.extras, event.signals)
            due: tuple[object, ...] = (None, None, None, None, {}, {})
            expect(seq, "profile", due, found, "samples, counters, tier, floor, extras, signals")

    def _measured(self, seq: int, event: KernelExamined, subject: SubjectDeclared) -> None:
        expect, shelf = self._findings.expect, self._shelf
        assert event.samples is not None
        if event.launches is None:
            self._findings.add(seq, "profile", "launches of a kernel that was timed", "absent")
            return
        samples, launches = shelf.json(event.samples, Samples), shelf.json(event.launches, Launches)
        counters = None if event.counters is None else shelf.json(event.counters, Counters)
        expect(seq, "samples", self._registered.statistics.blocks, len(samples.blocks), "blocks")
        found = statistic.interval(samples, self._registered.statistics)
        expect(seq, "noise floor", None if found is None else statistic.noise_floor(found), event.floor, "floor")
        expect(seq, "profile", derive_signals.tier(counters, launches), event.tier, "tier")
        signals = derive_signals.signals(
            subject.problem,
            subject.contract,
            self._device.chip,
            self._device.copy_gbps,
            samples,
            launches,
            counters,
            shelf.json(self._device.calibration, Calibration),
            read_extras(shelf, event.extras, launches),
        )
        self._findings.differences(seq, "signals", signals, event.signals)

    def _answered(self, seq: int, event: RulesAnswered) -> None:
        """Every rule's answer on the signals as recorded."""
        subject = self._fold.subjects[event.subject]
        found = self._exam.examined[event.subject][1]
        due = exam_derive.answers(
            self._exam.table(),
            found.signals,
            self._device.chip,
            subject.contract,
            subject.problem.prescriptions,
        )
        asked, told = ([(a.rule, a.version) for a in answers] for answers in (due, event.answers))
        if self._findings.expect(seq, "answers", asked, told, "rules"):
            for one, other in zip(due, event.answers, strict=True):
                self._findings.expect(seq, "answers", one, other)

    # --- comparisons ---

    def _compared(self, seq: int, event: PairCompared) -> None:
        expect, pair = self._findings.expect, self._fold.pairs[event.pair]
        subject = self._fold.subjects[pair.declared.subject]
        examined = self._exam.examined.get(subject.name)
        samples = self._shelf.json(event.samples, Samples)
        pair.sampled_ns += sum(samples.left()) + sum(samples.right())
        statistics = self._registered.statistics
        floor = None if examined is None else examined[1].floor
        looked = statistic.judge_by_looks(
            outcome="passed",
            inert=False,
            samples=samples,
            margin=max(statistics.margin, statistics.floor_multiple * (floor or 0.0)),
            floor_ns=statistic.physical_floor(subject.problem, self._device.chip, subject.contract),
            statistics=statistics,
            limits=subject.problem.limits.get(subject.contract),
        )
        due = looked.judgement
        for forbidden in looked.forbidden:
            self._findings.add(seq, "looks", "an end at the first look that decides", forbidden)
        expect(seq, "verdict", (due.verdict, due.reason), (event.verdict, event.reason))
        expect(seq, "interval", due.interval, event.interval)
        expect(seq, "margin", due.margin, event.margin)

    def _cross_checked(self, seq: int, event: CountersCompared) -> None:
        expect = self._findings.expect
        expect(seq, "counters compared", self._exam.examined[event.subject][1].counters, event.ours, "ours")
        ours, theirs = self._shelf.json(event.ours, Counters), self._shelf.json(event.theirs, Counters)
        expect(seq, "counters compared", "ncu", theirs.collector, "collector of theirs")
        due = exam_derive.counter_rows(ours, theirs)
        listed, told = ([row.metric for row in rows] for rows in (due, event.rows))
        if expect(seq, "counters compared", listed, told, "metrics"):
            for one, other in zip(due, event.rows, strict=True):
                expect(seq, "counters compared", one, other)

    def _stated(self) -> None:
        if self._exam.stated is None:
            return
        seq, stated = self._exam.stated
        with self._findings.derivation(seq, "figures"):
            events = [event for _, event in self._exam.examined.values()]
            due = exam_derive.figures(self._fold.pairs.values(), self._fold.matrices(), self._fold.rows, events)
            if origin_of(self._registered) is not None:
                due |= statement_figures(self._exam.reproduced)
            self._findings.differences(seq, "figures", due, stated.figures)
