"""A whole examination: register, calibrate, examine every kernel, compare every pair, cross-check, state the figures. Resumes by folding."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..events.model import (
    Event,
    ExaminationRegistered,
    ExaminationStated,
    Origin,
    PairDeclared,
    Rule,
    RuleSeeded,
    RunStopped,
    StatementDeclared,
    Statistics,
    SubjectDeclared,
)
from ..events.writer import LedgerWriter
from ..problems.contract import declared
from ..profilers import artifacts as shapes
from ..profilers.metrics import plan
from ..projections.examination import ExaminationView, figures, fold
from ..projections.reproduction import answers, measurable
from .ceilings import calibrated
from .examining import Ground, Pair, Subject, asked, beside, check_sides, compare, examine
from .executor import Executor, Observation
from .records import Draft
from .registration import STATISTICS, code_digests, environment

Watch = Callable[[int, int, str], None]


class ExaminationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asks for. `roles` are extras beyond those that the rules need; `ncu` names subjects to cross-check,
    `reports` is what report files of ncu hold, by subject, for those that it is not run over. A reproduction has an `origin` and its
    `statements`; every side of its pairs is a subject.
    """

    purpose: str
    subjects: tuple[Subject, ...]
    rules: tuple[Rule, ...]
    pairs: tuple[Pair, ...] = ()
    roles: tuple[str, ...] = ()
    ncu: tuple[str, ...] = ()
    reports: dict[str, Observation] = {}
    seed: int = 0
    statistics: Statistics = STATISTICS
    origin: Origin | UnsetType = UNSET
    statements: tuple[StatementDeclared, ...] | UnsetType = UNSET


class Examination:
    """Plays one request against a ledger; what the ledger already holds of it is not measured again."""

    def __init__(self, ledger: LedgerWriter, executor: Executor, request: ExaminationRequest, watch: Watch) -> None:
        self._ledger, self._executor, self._request, self._watch = ledger, executor, request, watch
        self._subjects = {subject.name: subject for subject in request.subjects}
        self._done, self._total = 0, 1

    def earlier(self) -> tuple[ExaminationView, ...]:
        """The ledger's finished examinations that were registered as this one would be, in order."""
        return tuple(view for view in self._views().values() if view.stopped is not None and self._alike(view))

    def play(self) -> ExaminationView:
        """Register, or go on with an unfinished examination that was registered alike; measure what is missing; state the figures."""
        self._run = self._open()
        ground = self._ground()
        view = self._view()
        self._refuse_other_artifacts(view)
        waiting = [subject for subject in self._request.subjects if subject.name not in view.examined]
        self._total = len(waiting) + sum(
            pair.times - len(view.pairs.get(pair.name, ())) for pair in self._request.pairs
        )
        for subject in waiting:
            self._keep(examine(ground, subject))
            self._step(f"{subject.name}: {self._brief(subject.name)}")
        for pair in self._request.pairs:
            self._compare(ground, pair)
        self._cross_check(ground)
        self._conclude()
        return self._view()

    def _conclude(self) -> None:
        view = self._view()
        view = replace(view, reproduced=answers(view))
        stated = ExaminationStated(run=self._run, figures=figures(view, self._sampled_ns))
        self._append(*view.reproduced, stated, RunStopped(run=self._run, cell=None, reason="plan completed", rule=None))

    def _open(self) -> str:
        views = self._views()
        unfinished = [run for run, view in views.items() if view.stopped is None]
        for run in unfinished:
            if self._alike(views[run]):
                return run
        if unfinished:
            raise BadInput(
                f"{self._ledger.path}: {unfinished[-1]} is unfinished and was registered otherwise (subjects, pairs, rules, "
                "code or device differ). Finish it with the command that began it, or name another --ledger."
            )
        run = f"exam{len(views) + 1}"
        registration, draft = self._registration(run)
        draft.add(registration)
        for rule in self._request.rules:
            draft.add(RuleSeeded(run=run, rule=rule))
        self._ledger.append(run, 0, draft.events, list(draft.artifacts.values()))
        return run

    def _alike(self, view: ExaminationView) -> bool:
        """Whether an examination of the ledger is this one: what it answers with other rules would not follow from its own."""
        return view.registration == self._registration(view.run)[0] and view.rules == self._request.rules

    def _refuse_other_artifacts(self, view: ExaminationView) -> None:
        """What a person brings along is not registered: a kernel that was examined with another timeline is not examined again."""
        for subject in self._request.subjects:
            examined = view.examined.get(subject.name)
            for role, content in subject.given.items() if examined is not None and examined.samples is not None else ():
                if examined is not None and examined.extras.get(role) != digest(content):
                    raise BadInput(
                        f"{self._ledger.path}: {self._run} is unfinished and has examined {subject.name} with another {role}. "
                        "Finish it with the file that began it, or name another --ledger."
                    )

    def _registration(self, run: str) -> tuple[ExaminationRegistered, Draft]:
        """The registration, and a draft that keeps every source and every problem's file that it names."""
        request, draft = self._request, Draft()
        for subject in request.subjects:
            draft.keep_files(subject.problem.files)
        subjects = tuple(
            SubjectDeclared(
                name=subject.name,
                problem=declared(subject.problem, "flags"),
                contract=subject.contract,
                source=draft.keep_source(subject.source),
                half=subject.half,
                fires=subject.fires,
                silent=subject.silent,
            )
            for subject in request.subjects
        )
        pairs = tuple(
            PairDeclared(
                name=pair.name,
                subject=pair.subject,
                left=draft.keep_source(pair.left),
                right=draft.keep_source(pair.right),
                times=pair.times,
                truth=pair.truth,
            )
            for pair in request.pairs
        )
        if self._request.statistics.objective is not UNSET:
            raise BadInput("statistics: an examination compares times, found an objective; leave it out")
        event = ExaminationRegistered(
            run=run,
            seed=request.seed,
            purpose=request.purpose,
            subjects=subjects,
            pairs=pairs,
            statistics=self._request.statistics,
            code=code_digests(),
            environment=environment(self._executor),
            origin=request.origin,
            statements=request.statements,
        )
        return event, draft

    def _ground(self) -> Ground:
        """Chip and ceilings: measured now, or read back from the ledger."""
        if self._view().calibration is None:
            self._say("measuring the device's ceilings")
            self._keep(calibrated(self._executor, self._run))
        calibration = self._view().calibration
        assert calibration is not None
        return Ground(
            run=self._run,
            executor=self._executor,
            seed=self._request.seed,
            rules=self._request.rules,
            roles=self._request.roles,
            statistics=self._request.statistics,
            chip=calibration.chip,
            copy_gbps=calibration.copy_gbps,
            ceilings=shapes.decode(shapes.Calibration, self._ledger.artifact(calibration.calibration)),
        )

    def _compare(self, ground: Ground, pair: Pair) -> None:
        view, subject = self._view(), self._subjects[pair.subject]
        examined = view.examined[pair.subject]
        if self._request.origin:
            if not measurable(view, pair.name):
                self._step(f"{pair.name}: not compared, for a side of it was refused or could not be timed")
                return
        else:
            if examined.samples is None:
                raise BadInput(f"{pair.name}: its subject {pair.subject} was not measured: {examined.reason}")
            check_sides(ground, subject, pair)
        for number in range(len(view.pairs.get(pair.name, ())) + 1, pair.times + 1):
            self._keep(compare(ground, subject, pair, number, examined.floor or 0.0))
            self._step(f"{pair.name}: {number} of {pair.times}" if number % 20 == 0 or number == pair.times else "")

    def _cross_check(self, ground: Ground) -> None:
        """What reports hold, then Nsight Compute over the other subjects that were named for it and passed, all in one process."""
        view = self._view()
        done = view.counters.keys() | view.static.keys()
        for name, seen in self._request.reports.items():
            if name not in done and view.examined[name].samples is not None:
                self._beside(ground, view, self._subjects[name], seen)
        done |= self._request.reports.keys()
        names = [n for n in self._request.ncu if n not in done and view.examined[n].samples is not None]
        if not names:
            return
        self._say(f"Nsight Compute over {len(names)} kernels")
        chosen = [self._subjects[name] for name in names]
        questions = [(asked(ground, subject, "examine", subject.source), subject.source) for subject in chosen]
        for subject, seen in zip(chosen, self._executor.ncu(questions, plan(ground.rules).metrics), strict=True):
            if seen.status != "ok":
                self._say(f"{subject.name}: Nsight Compute: {seen.status}: {seen.text[:200]}")
            self._beside(ground, view, subject, seen)

    def _beside(self, ground: Ground, view: ExaminationView, subject: Subject, seen: Observation) -> None:
        name = view.examined[subject.name].counters
        ours = None if name is None else (name, self._ledger.artifact(name))
        self._keep(beside(ground, subject, ours, seen))

    def _brief(self, name: str) -> str:
        examined = self._view().examined[name]
        time_us = examined.signals.get("time_us")
        return f"{examined.outcome} ({examined.reason})" if time_us is None else f"{time_us:.1f} us"

    def _sampled_ns(self, name: str) -> int:
        return sum(map(sum, shapes.decode(shapes.Samples, self._ledger.artifact(name)).blocks))

    def _append(self, *events: Event) -> None:
        self._ledger.append(self._run, self._ledger.version(self._run), list(events))

    def _keep(self, draft: Draft) -> None:
        if draft.events:
            artifacts = list(draft.artifacts.values())
            self._ledger.append(self._run, self._ledger.version(self._run), draft.events, artifacts)

    def _views(self) -> dict[str, ExaminationView]:
        return fold((stored.stream, stored.event) for stored in self._ledger.events())

    def _view(self) -> ExaminationView:
        return self._views()[self._run]

    def _step(self, text: str) -> None:
        self._done += 1
        self._say(text)

    def _say(self, text: str) -> None:
        self._watch(self._done, self._total, text)
