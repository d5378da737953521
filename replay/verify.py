"""The whole verification of a ledger, from its file to its claims. Never raises on a bad ledger, only on an unreadable one."""

from __future__ import annotations

import os
from collections import Counter
from itertools import takewhile

import msgspec

from ..events.model import DeviceCalibrated, GeneratorAsked, RunRegistered
from ..events.reader import LedgerReader
from .artifacts import Launches, Shelf
from .cells import Ended, walk
from .declared import check_files, files_of, problems_of
from .exam_checks import Examiner
from .exam_grammar import ExamEvents, sort_examinations
from .exam_registered import check_examination, check_sources
from .exams import ExamView, Fold
from .finals import ClaimView, Finals, Pins, check_claims, strict_twins
from .findings import Finding, Findings, encodable
from .grammar import Round, parse
from .integrity import (
    LARGEST_TOTAL,
    GoesOn,
    Scanned,
    check_artifacts,
    check_indexes,
    check_schema,
    check_schema_cells,
    scan,
    without_collector,
)
from .measured import Measured
from .offers import GENERATORS
from .references import LISTING, generated, references
from .rounds import Setting
from .runs import (
    RunEvents,
    check_calibration,
    check_calibrations,
    check_cell_fields,
    check_numbers,
    check_registration,
    sort_out,
)
from .seal import Anchors, Sealing, SealView, Trust, check_file, trust
from .views import RoundRow, RuleRow, RunView, fold_cell

_STAND_IN = "{}: times by the CPU's clock, of the stand-in: it measures no GPU"
_ORIGIN = "{}: not checked: origin of candidate of {} by {}: what rewrote the text is not on the page"
_STATED = "the truth of pairs, and which half a threshold was set on, are statements; no measurement shows them"


class Report(msgspec.Struct, frozen=True):
    """A verification's outcome; `notes` say what was not, or could not be, checked."""

    path: str
    deep: bool
    head_seq: int
    head: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    runs: tuple[RunView, ...]
    examinations: tuple[ExamView, ...] = ()
    root: str = ""
    seals: tuple[SealView, ...] = ()


@without_collector()
def verify(
    path: str | os.PathLike[str],
    deep: bool,
    *,
    head: str | None = None,
    upto: int | None = None,
    anchors: Anchors | None = None,
) -> Report:
    """Check a ledger: the file, chain, artifacts and folds; with `deep` also re-derive everything that follows from them.

    `head` is the hash that its last event must have; `upto` reads the first events only; `anchors` were kept elsewhere.
    Raises UnreadableLedger; BadInput where an anchor is none.
    """
    trusted = trust(anchors or Anchors())
    try:
        return _verified(path, deep, head, upto, trusted, whole=False)
    except GoesOn:
        return _verified(path, deep, head, upto, trusted, whole=True)


def _verified(
    path: str | os.PathLike[str], deep: bool, head: str | None, upto: int | None, trusted: Trust, *, whole: bool
) -> Report:
    """The verification; but for `whole`, runs are checked and let go as they end."""
    findings = Findings()
    check_file(path, trusted, findings)
    with LedgerReader(path) as reader:
        check_schema(((o[0], o[1], o[2]) for o in reader.schema_objects()), findings)
        if not any(finding.kind == "schema object" for finding in findings.all):
            check_schema_cells(path, findings)
        rows = reader.rows() if upto is None else takewhile(lambda row: row.seq <= upto, reader.rows())
        if deep:
            check_indexes(path, findings)
        sound, unread = check_artifacts(reader.artifact_rows(), findings)
        verification = _Verification(Shelf(reader.artifact, sound), sound, deep, findings)
        scanned = scan(rows, findings, sizes=trusted.sizes(), ended=None if whole else verification.take)
        views, exams = verification.finish(scanned)
        sealing = Sealing(scanned, trusted, findings)
        notes = [*reader.notices, *verification.notes(), *sealing.notes(head is not None)]
    if unread:
        notes.append(f"{unread} artifacts were not read: all together are over {LARGEST_TOTAL} bytes")
    if head is not None:
        findings.expect(scanned.last, "head", head.lower(), scanned.head)
    counts = {
        "events": scanned.last if upto is None else min(upto, scanned.last),
        "artifacts": len(sound),
        "runs": len(views),
        "cells": verification.cells,
        "rounds": sum(len(view.rounds) for view in views),
    }
    if exams:
        counts["examinations"] = len(exams)
    ordered = tuple(sorted(findings.all, key=lambda finding: finding.seq))
    return Report(
        path=encodable(os.fspath(path)),
        deep=deep,
        head_seq=scanned.last,
        head=scanned.head,
        counts=counts,
        findings=ordered,
        notes=tuple(notes),
        runs=views,
        examinations=exams,
        root=scanned.heads.root().hex(),
        seals=tuple(sealing.views),
    )


class _Verification:
    """One pass over a ledger: runs and examinations are taken as they end, and what crosses them is kept until the last."""

    def __init__(self, shelf: Shelf, sound: dict[str, int], deep: bool, findings: Findings) -> None:
        self._shelf, self._sound, self._deep, self._findings = shelf, sound, deep, findings
        self._used: set[str] = set()
        self._notes: list[str] = []
        self._measured, self._pins = Measured(shelf, findings), Pins()
        self._made: set[str] = set()
        self._baselines: list[tuple[int, str, str]] = []
        self._runs: list[tuple[int, RunView]] = []
        self._exams: list[tuple[int, ExamView]] = []
        self.cells = 0

    def take(self, scanned: Scanned) -> None:
        """Check what these streams hold."""
        self._used |= self._check_references(scanned)
        if self._deep:
            self._made |= strict_twins(generated(scanned), self._shelf)
        for run in sort_out(scanned, self._findings):
            self._runs.append((0 if run.registered is None else run.registered[0], self.run(run)))
        for exam in sort_examinations(scanned, self._findings):
            self._exams.append((0 if exam.registered is None else exam.registered[0], self.examination(exam)))
        self._shelf.forget()

    def finish(self, scanned: Scanned) -> tuple[tuple[RunView, ...], tuple[ExamView, ...]]:
        """Check what is left, and what could only be asked at the end; all views in order of registration."""
        self.take(scanned)
        for seq, source, twin in self._baselines:
            if twin in self._made:
                self._findings.add(seq, "head to head", "a baseline that no candidate is", source)
        check_numbers("run", [(seq, view.run) for seq, view in self._runs if seq], self._findings)
        check_numbers("exam", [(seq, view.exam) for seq, view in self._exams if seq], self._findings)
        runs, exams = sorted(self._runs, key=_registered), sorted(self._exams, key=_registered)
        return tuple(view for _, view in runs), tuple(view for _, view in exams)

    def _check_references(self, scanned: Scanned) -> set[str]:
        """Every artifact that an event names is there; the digests so named."""
        used: set[str] = set()
        for seq, field, digest in references(scanned):
            used.add(digest)
            if digest not in self._sound:
                self._findings.add(seq, "artifact missing", f"{field} {digest}", "absent, or not what its digest says")
        if self._deep:
            used |= self._check_launched(scanned)
        return used

    def _check_launched(self, scanned: Scanned) -> set[str]:
        """Machine code and IR that launch lists name."""
        used: set[str] = set()
        lists: dict[str, int] = {}
        for items in scanned.streams.values():
            for seq, event in items:
                if isinstance(event, LISTING) and event.launches in self._sound:
                    lists.setdefault(event.launches or "", seq)
        for digest, seq in lists.items():
            with self._findings.derivation(seq, "launches"):
                for kernel in self._shelf.json(digest, Launches).kernels:
                    for part in (kernel.code, kernel.ttir):
                        if part is None:
                            continue
                        used.add(part)
                        if part not in self._sound:
                            self._findings.add(seq, "artifact missing", f"{part}, named by launches {digest}", "absent")
        return used

    def run(self, run: RunEvents) -> RunView:
        """Check one run as far as it got, and fold it."""
        findings = self._findings
        check_registration(run, findings)
        if self._deep:
            check_calibrations(run, self._shelf, findings)
        if run.registered is None:
            return RunView(run.run, "", None, 0, None, (), (), {}, ())
        registered = run.registered[1]
        check_files(run.registered[0], registered.problems, self._shelf, findings)
        clock = self._measured.check(run, registered) if self._deep else None
        ended, rules, rounds, ends = self._cells(run, registered, clock)
        finals = self._finals(run, registered, ended) if self._deep else None
        claims = self._claims(run, registered, finals)
        self._note_run(run, registered, clock)
        origin = None if registered.origin is None else registered.origin.head
        stopped = None if run.stopped is None else run.stopped[1].reason
        cells = len(registered.plan)
        folds = tuple(rules), tuple(rounds), ends, claims
        return RunView(run.run, registered.executor, origin, cells, stopped, *folds, run.table())

    def examination(self, exam: ExamEvents) -> ExamView:
        """Check one examination as far as it got, and fold it."""
        check_examination(exam, self._findings)
        fold = Fold(exam, self._findings)
        if self._deep and exam.registered is not None:
            seq, registered = exam.registered
            check_sources(seq, registered, self._shelf, self._findings)
            check_files(seq, problems_of(registered), self._shelf, self._findings)
            clock = self._measured.check_examination(exam, registered.statistics)
            if exam.device is not None:
                device = exam.device[1]
                check_calibration(exam.device[0], device, self._shelf, self._findings)
                Examiner(exam, registered, device, fold, clock, self._shelf, self._findings).all()
            if clock == "cpu_wall":
                self._notes.append(_STAND_IN.format(exam.run))
        self._note_examination(exam, fold)
        return fold.view()

    def _note_examination(self, exam: ExamEvents, fold: Fold) -> None:
        missing = fold.missing()
        if exam.stopped is None:
            first = f": {len(missing)} still to come, first {missing[0]}" if missing else ""
            self._notes.append(f"{exam.run} has not ended: no RunStopped{first}")
        if fold.pairs or any(subject.half for subject in fold.subjects.values()):
            self._notes.append(f"{exam.run}: {_STATED}")
        if fold.view().ncu_rules:
            self._notes.append(
                f"{exam.run}: what Nsight Compute's own rules say is a fact, of which nothing is derived"
            )
        if fold.rows:
            self._notes.append(f"{exam.run}: that the other counters are Nsight Compute's is taken as recorded")

    def _cells(
        self, run: RunEvents, registered: RunRegistered, clock: str | None
    ) -> tuple[list[Ended], list[RuleRow], list[RoundRow], dict[str, str]]:
        rules, rounds, ended, ends = list[RuleRow](), list[RoundRow](), list[Ended](), dict[str, str]()
        table, missing = run.table(), list[str]()
        made = Counter[str]()
        for stream in run.planned:
            self.cells += 1
            if stream not in run.cells:
                missing.append(f"cell {stream}")
                continue
            check_cell_fields(run, stream, self._findings)
            script = parse(run.cells[stream], self._findings)
            if script.stopped is None:
                missing.append(f"the end of {stream}")
            elif run.stopped is not None and script.stopped[0] > run.stopped[0]:
                self._findings.add(
                    script.stopped[0], "order of events", f"the end of {stream} before that of {run.run}", "after it"
                )
            ends[stream] = "unfinished" if script.stopped is None else script.stopped[1].reason
            made.update(by for r in script.rounds if (by := _by_rewriting(r)) is not None)
            own_rules, own_rounds = fold_cell(stream, script, table)
            rules += own_rules
            rounds += own_rounds
            if self._deep:
                with self._findings.derivation(run.cells[stream][0][0], f"cell {stream}"):
                    setting = self._setting(run, registered, stream, clock)
                    ended.append(walk(setting, script, self._findings))
        self._report_missing(run, missing)
        if made and self._deep:
            by = ", ".join(sorted(made))
            many = "round" if made.total() == 1 else "rounds"
            self._notes.append(_ORIGIN.format(run.run, f"{made.total()} {many}", by))
        return ended, rules, rounds, ends

    def _setting(self, run: RunEvents, registered: RunRegistered, stream: str, clock: str | None) -> Setting:
        cell = run.planned[stream]
        problem = next(p for p in registered.problems if p.name == cell.problem)
        device = _device(run, run.cells[stream][0][0])
        return Setting(registered, cell, stream, problem, device, run.table(), self._shelf, clock)

    def _report_missing(self, run: RunEvents, missing: list[str]) -> None:
        """Cells, or their ends, are owed once the run says that its plan is completed."""
        if run.stopped is not None:
            for what in missing:
                self._findings.add(
                    run.stopped[0], "missing cell", what, "absent, though the plan is said to be completed"
                )
        elif missing:
            self._notes.append(f"{run.run} is unfinished: {len(missing)} still to come, first {missing[0]}")

    def _finals(self, run: RunEvents, registered: RunRegistered, ended: list[Ended]) -> Finals:
        _check_starts(run, ended, self._findings)
        chip = run.devices[0][1].chip if run.devices else None
        finals = Finals(registered, ended, chip, self._pins, self._shelf, self._findings)
        for seq, event in run.head_to_heads:
            with self._findings.derivation(seq, f"comparison {event.comparison}"):
                finals.check(seq, event)
        # Claims, like the run's end, come after everything that they rest on.
        concluded = [at for at, _ in run.claims[:1]] + ([run.stopped[0]] if run.stopped is not None else [])
        if concluded:
            finals.check_complete(concluded[0])
        self._baselines += finals.baselines
        return finals

    def _claims(self, run: RunEvents, registered: RunRegistered, finals: Finals | None) -> tuple[ClaimView, ...]:
        completed = None if run.stopped is None else run.stopped[0]
        if run.stopped is not None:
            seq, stopped = run.stopped
            self._findings.expect(seq, "stop", ("plan completed", None), (stopped.reason, stopped.rule), "reason, rule")
        return check_claims(registered, run.claims, finals, completed, self._findings)

    def _note_run(self, run: RunEvents, registered: RunRegistered, clock: str | None) -> None:
        if clock == "cpu_wall":
            self._notes.append(_STAND_IN.format(run.run))
        if registered.origin is not None:
            self._notes.append(
                f"{run.run}: recorded, not pre-registered; it answers from the ledger with head {registered.origin.head} "
                f"({registered.origin.events} events), which was not read"
            )
        if run.stopped is None:
            self._notes.append(f"{run.run} has not ended: no RunStopped")

    def notes(self) -> list[str]:
        """What this verification leaves open."""
        notes = [*self._notes]
        if self._deep:
            orphans = len(self._sound.keys() - self._used)
            if orphans:
                notes.append(f"{orphans} artifacts are named by no event")
            notes.append("facts of the world (device, clocks, samples as measured) are taken as recorded")
        else:
            notes.append("nothing re-derived: use --verify for signals, matches, verdicts, evolution and claims")
        return notes


def _by_rewriting(round_: Round) -> str | None:
    """The generator whose rewriting is not on the page: all but the catalogue, and but for answers, whose source is."""
    made = round_.generated
    if made is None or made.generator in ("start", *GENERATORS):
        return None
    answered = any(isinstance(e, GeneratorAsked) and e.exchanges and e.outcome == "made" for _, e in round_.offers)
    return None if answered else made.generator


def _registered(placed: tuple[int, object]) -> int:
    return placed[0]


def _device(run: RunEvents, seq: int) -> DeviceCalibrated:
    """The calibration in force at an event. Raises ValueError where there is none."""
    before = [device for at, device in run.devices if at < seq]
    if not before:
        raise ValueError("no DeviceCalibrated before the cell")
    return before[-1]


def _check_starts(run: RunEvents, ended: list[Ended], findings: Findings) -> None:
    """Cells of one problem, contract and pool begin with one source; those of an imported problem with its start.py."""
    starts: dict[tuple[str, str, str], str] = {}
    problems = () if run.registered is None else run.registered[1].problems
    imported = {problem.name: files_of(problem).get("start.py") for problem in problems}
    for end in ended:
        key = (end.cell.problem, end.cell.contract, end.cell.pool)
        if end.start is None:
            continue
        due = imported.get(end.cell.problem) or starts.setdefault(key, end.start)
        if due != end.start:
            seq = next(iter(run.cells[stream] for stream, c in run.planned.items() if c == end.cell))[0][0]
            findings.add(
                seq, "incumbent", f"start {due}, as in the problem and the other cells of its group", end.start
            )
