"""A whole run: register, calibrate, play every cell of the plan, compare the winners, answer the claims. Resumes by folding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UnsetType

from ..events.errors import BadInput
from ..events.model import Cell, Event, RunRegistered, RunStopped
from ..events.writer import LedgerWriter
from ..problems.contract import Problem, load
from ..problems.imported import restored
from ..profilers import artifacts as shapes
from ..projections.claims import answer, claim_repetitions
from ..projections.runs import Group, RunView, cell_plan, fold, group_of, groups
from .ceilings import calibrated
from .executor import Executor
from .finals import Finals
from .generators.chain import Chain
from .loop import CellLoop
from .measuring import Bench
from .records import media_of
from .registration import RunRequest, code_digests, register, table_of
from .sharing import Sharing

Watch = Callable[[int, int, str], None]


class Run:
    """One run in a ledger. `watch(done, total, text)` is told of every step."""

    def __init__(self, ledger: LedgerWriter, executor: Executor, watch: Watch) -> None:
        self._ledger, self._executor, self._watch = ledger, executor, watch
        self._run, self._done, self._total = "", 0, 1
        self._problems: dict[str, Problem] = {}
        self._chain: Chain | None = None

    def start(self, request: RunRequest) -> RunView:
        """Register a new run and play it; refuses while the ledger's last run is unfinished."""
        views = self._views()
        unfinished = [run for run, view in views.items() if view.stopped is None]
        if unfinished:
            raise BadInput(
                f"{self._ledger.path}: {unfinished[-1]} is unfinished. Go on with --resume, or name another --ledger."
            )
        self._run = f"run{len(views) + 1}"
        table, experience = table_of(self._run, request)
        registration = register(self._run, request, self._executor, experience)
        self._executor.check(registration)
        # Together, so that a resumed run has the very table and the very problems that were chosen.
        files = [
            (content, media_of(path)) for each in request.imported.values() for path, content in each.files.items()
        ]
        self._append(registration, *table, files=files)
        return self._play()

    def resume(self) -> RunView:
        """Go on with the ledger's last run, on the same kind of executor and recording."""
        views = self._views()
        unfinished = [run for run, view in views.items() if view.stopped is None]
        if not unfinished:
            raise BadInput(
                f"{self._ledger.path}: expected an unfinished run to resume, found none. Start one without --resume."
            )
        self._run = unfinished[-1]
        registration = views[self._run].registration
        assert registration is not None  # a run's first event, or there is no run
        self._same_ground(registration)
        self._executor.check(registration)
        ours = (stored for stored in self._ledger.events() if stored.stream.partition("/")[0] == self._run)
        self._executor.resume([stored.event for stored in ours])
        return self._play()

    def _play(self) -> RunView:
        self._calibrate()
        view = self._view()
        assert view.registration is not None
        plan, names = view.registration.plan, view.registration.generators
        self._chain = None if isinstance(names, UnsetType) else Chain(names)
        self._total = len(plan)
        for group in groups(view.registration):
            for cell in (cell for cell in plan if group_of(cell) == group):
                self._cell(view, cell)
                self._done += 1
            self._finals(group)
        self._answer_claims()
        return self._view()

    def _cell(self, view: RunView, cell: Cell) -> None:
        assert view.registration is not None and view.calibration is not None
        problem, plan = self._problem(view, cell.problem), cell_plan(view, cell)
        ceilings = shapes.decode(shapes.Calibration, self._ledger.artifact(view.calibration.calibration))
        shares = view.registration.shares is True
        sharing = Sharing(self._executor, self._ledger, plan, view.registration) if shares else None
        seed, copy_gbps = view.registration.seed, view.calibration.copy_gbps
        bench = Bench(sharing or self._executor, plan, problem, seed, copy_gbps, ceilings, sharing)
        label = f"{cell.problem} {cell.contract} {cell.arm} #{cell.repetition}"
        CellLoop(self._ledger, bench, plan, problem, lambda text: self._say(f"{label}: {text}"), self._chain).run()

    def _finals(self, group: Group) -> None:
        label = f"{group.problem} {group.contract} #{group.repetition}"
        view = self._view()
        finals = Finals(self._ledger, self._executor, view, lambda text: self._say(f"{label}: {text}"))
        finals.play(group, self._problem(view, group.problem))

    def _calibrate(self) -> None:
        if self._view().calibration is None:
            self._say("measuring the device's ceilings")
            draft = calibrated(self._executor, self._run)
            self._ledger.append(
                self._run, self._ledger.version(self._run), draft.events, list(draft.artifacts.values())
            )

    def _answer_claims(self) -> None:
        view = self._view()
        assert view.registration is not None
        answered = {stated.claim for stated in view.claims}
        for claim in view.registration.claims:
            if claim.claim not in answered:
                self._append(answer(self._run, claim, view.head_to_heads, claim_repetitions(view.registration, claim)))
        self._append(RunStopped(run=self._run, cell=None, reason="plan completed", rule=None))

    def _same_ground(self, registration: RunRegistered) -> None:
        """A resumed run must be the run that was registered: same executor, recording, device, code and problems."""
        executor, code = self._executor, code_digests()
        changed = {
            path for path in code.keys() | registration.code.keys() if code.get(path) != registration.code.get(path)
        }
        problems = {problem.name: problem.digest for problem in registration.problems}
        now = {name: self._declared(registration, name).digest for name in problems}
        ground: tuple[tuple[str, object, object], ...] = (
            ("executor", registration.executor, executor.name),
            ("recording", registration.origin, executor.origin),
            ("device", registration.environment["device"], executor.facts()["device"]),
            ("code (changed files)", [], sorted(changed)),
            ("problem", problems, now),
        )
        for what, want, have in ground:
            if want != have:
                raise BadInput(
                    f"{self._ledger.path}: {self._run} was registered with another {what} (expected {_brief(want)}, "
                    f"found {_brief(have)}). Resume it on the same ground, or start anew in another --ledger."
                )

    def _problem(self, view: RunView, name: str) -> Problem:
        assert view.registration is not None
        return self._declared(view.registration, name)

    def _declared(self, registration: RunRegistered, name: str) -> Problem:
        """A problem of the run: from the ledger where it was imported, else from its folder."""
        if name not in self._problems:
            declared = next((p for p in registration.problems if p.name == name), None)
            imported = declared is not None and isinstance(declared.files, dict)
            ours = restored(declared, self._ledger.artifact) if declared is not None and imported else load(name)
            self._problems[name] = ours
        return self._problems[name]

    def _append(self, *events: Event, files: Sequence[tuple[bytes, str]] = ()) -> None:
        self._ledger.append(self._run, self._ledger.version(self._run), list(events), list(files))

    def _views(self) -> dict[str, RunView]:
        return fold((stored.stream, stored.event) for stored in self._ledger.events())

    def _view(self) -> RunView:
        return self._views()[self._run]

    def _say(self, text: str) -> None:
        self._watch(self._done, self._total, text)


def _brief(value: object) -> str:
    return str(value)[:300]
