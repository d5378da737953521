"""One pass over a ledger's runs and examinations: what each records against what follows from it. Never opens a file."""

from __future__ import annotations

from collections import Counter

from msgspec import UnsetType

from ..events.model import DeviceCalibrated, GeneratorAsked, RunRegistered
from .cells import Ended, walk
from .declared import check_files, files_of, problems_of
from .exam_checks import Examiner
from .exam_grammar import ExamEvents, sort_examinations
from .exam_registered import check_examination, check_sources
from .exams import ExamView, Fold
from .finals import ClaimView, Finals, Pins, check_claims, strict_twins
from .findings import Findings
from .grammar import Round, parse
from .integrity import Scanned
from .kept import Kept
from .learnt import check_learnt
from .measured import Measured
from .offers import GENERATORS
from .origin import Named, samples_of
from .references import check_references, generated
from .reproduced import origin_of
from .runs import (
    RunEvents,
    check_calibration,
    check_calibrations,
    check_cell_fields,
    check_numbers,
    check_registration,
    sort_out,
)
from .setting import Setting
from .shelf import Shelf
from .views import RoundRow, RuleRow, RunView, fold_cell

_STAND_IN = "{}: times by the CPU's clock, of the stand-in: it measures no GPU"
_ORIGIN = "{}: not checked: origin of candidate of {} by {}: what rewrote the text is not on the page"
_OBJECTIVE = (
    "{}: verdicts by {}: FASTER and every ratio are about warm calls' energy or heat, at most {:g} times the time of the cell's "
    "fastest incumbent; that the meter was read as recorded is a fact of the world"
)
_STATED = "the truth of pairs, and which half a threshold was set on, are statements; no measurement shows them"


class Verification:
    """One pass over a ledger: runs and examinations are taken as they end, and what crosses them is kept until the last."""

    def __init__(
        self,
        shelf: Shelf,
        sound: dict[str, int],
        deep: bool,
        findings: Findings,
        *,
        has_origin: bool = False,
        listed: int | None = None,
    ) -> None:
        self._shelf, self._sound, self._deep, self._findings = shelf, sound, deep, findings
        self._has_origin = has_origin
        self.kept = Kept(listed)
        self._used: set[str] = set()
        self._measured, self._pins = Measured(shelf, findings), Pins()
        self._made: set[str] = set()
        self._baselines: list[tuple[int, str, str]] = []

    def take(self, scanned: Scanned) -> None:
        """Check what these streams hold."""
        self._used |= check_references(scanned, self._sound, self._shelf if self._deep else None, self._findings)
        if self._deep:
            self._made |= strict_twins(generated(scanned), self._shelf)
        for run in sort_out(scanned, self._findings):
            view = self.run(run)
            self.kept.run(0 if run.registered is None else run.registered[0], view, len(view.rounds))
        for exam in sort_examinations(scanned, self._findings):
            self.kept.exams.append((0 if exam.registered is None else exam.registered[0], self.examination(exam)))
        self._shelf.forget()

    def finish(self, scanned: Scanned) -> tuple[tuple[RunView, ...], tuple[ExamView, ...]]:
        """Check what is left, and what could only be asked at the end; all views in order of registration."""
        self.take(scanned)
        for seq, source, twin in self._baselines:
            if twin in self._made:
                self._findings.add(seq, "head to head", "a baseline that no candidate is", source)
        check_numbers("run", [(seq, view.run) for seq, view, _ in self.kept.runs if seq], self._findings)
        check_numbers("exam", [(seq, view.exam) for seq, view in self.kept.exams if seq], self._findings)
        return self.kept.views()

    def run(self, run: RunEvents) -> RunView:
        """Check one run as far as it got, and fold it."""
        findings = self._findings
        check_registration(run, findings)
        check_learnt(run, findings)
        if self._deep:
            check_calibrations(run, self._shelf, findings)
        if run.registered is None:
            return RunView(run.run, "", None, 0, None, (), (), {}, ())
        registered = run.registered[1]
        self.kept.learns |= not isinstance(registered.experience, UnsetType)
        self.kept.originals |= check_files(run.registered[0], registered.problems, self._shelf, self._findings)
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
            self.kept.originals |= check_files(seq, problems_of(registered), self._shelf, self._findings)
            clock = self._measured.check_examination(exam, registered.statistics)
            if exam.device is not None:
                device = exam.device[1]
                check_calibration(exam.device[0], device, self._shelf, self._findings)
                Examiner(exam, registered, device, fold, clock, self._shelf, self._findings).all()
            if clock == "cpu_wall":
                self.kept.notes.append(_STAND_IN.format(exam.run))
        self._note_examination(exam, fold)
        return fold.view()

    def _unread(self) -> str:
        return "" if self._has_origin else ", which was not read (--origin FILE)"

    def _note_origin(self, exam: ExamEvents) -> None:
        registered = None if exam.registered is None else exam.registered[1]
        origin = None if registered is None else origin_of(registered)
        if exam.registered is None or origin is None:
            return
        self.kept.origins.append(Named(exam.registered[0], exam.run, origin, registered, samples_of(exam.body)))
        self.kept.notes.append(
            f"{exam.run}: reproduces the ledger with head {origin.head} ({origin.events} events){self._unread()}"
        )

    def _note_examination(self, exam: ExamEvents, fold: Fold) -> None:
        missing = fold.missing()
        self._note_origin(exam)
        if exam.stopped is None:
            first = f": {len(missing)} still to come, first {missing[0]}" if missing else ""
            self.kept.notes.append(f"{exam.run} has not ended: no RunStopped{first}")
        if fold.pairs or any(subject.half for subject in fold.subjects.values()):
            self.kept.notes.append(f"{exam.run}: {_STATED}")
        if fold.view().ncu_rules:
            self.kept.notes.append(
                f"{exam.run}: what Nsight Compute's own rules say is a fact, of which nothing is derived"
            )
        if fold.rows:
            self.kept.notes.append(f"{exam.run}: that the other counters are Nsight Compute's is taken as recorded")

    def _cells(
        self, run: RunEvents, registered: RunRegistered, clock: str | None
    ) -> tuple[list[Ended], list[RuleRow], list[RoundRow], dict[str, str]]:
        rules, rounds, ended, ends = list[RuleRow](), list[RoundRow](), list[Ended](), dict[str, str]()
        table, missing = run.table(), list[str]()
        made = Counter[str]()
        for stream in run.planned:
            self.kept.cells += 1
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
            self.kept.notes.append(_ORIGIN.format(run.run, f"{made.total()} {many}", by))
        return ended, rules, rounds, ends

    def _setting(self, run: RunEvents, registered: RunRegistered, stream: str, clock: str | None) -> Setting:
        cell = run.planned[stream]
        problem = next(p for p in registered.problems if p.name == cell.problem)
        device = _device(run, run.cells[stream][0][0])
        return Setting(
            registered, cell, stream, problem, device, run.table(), self._shelf, clock, run.carries(), self._measured.declined
        )  # fmt: skip

    def _report_missing(self, run: RunEvents, missing: list[str]) -> None:
        """Cells, or their ends, are owed once the run says that its plan is completed."""
        if run.stopped is not None:
            for what in missing:
                self._findings.add(
                    run.stopped[0], "missing cell", what, "absent, though the plan is said to be completed"
                )
        elif missing:
            self.kept.notes.append(f"{run.run} is unfinished: {len(missing)} still to come, first {missing[0]}")

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
            self.kept.notes.append(_STAND_IN.format(run.run))
        wanted = registered.statistics.objective
        if not isinstance(wanted, UnsetType):
            self.kept.notes.append(_OBJECTIVE.format(run.run, wanted.by, wanted.bound))
        if registered.origin is not None and run.registered is not None:
            self.kept.origins.append(Named(run.registered[0], run.run, registered.origin))
            self.kept.notes.append(
                f"{run.run}: recorded, not pre-registered; it answers from the ledger with head {registered.origin.head} "
                f"({registered.origin.events} events){self._unread()}"
            )
        if not isinstance(registered.comparisons, UnsetType):
            named = ", ".join(registered.comparisons) or "none"
            self.kept.notes.append(f"{run.run}: of the comparisons after the rounds it registered only: {named}")
        if run.stopped is None:
            self.kept.notes.append(f"{run.run} has not ended: no RunStopped")

    def notes(self) -> list[str]:
        """What this verification leaves open."""
        notes = [*self.kept.notes, *self.kept.unlisted()]
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
