"""A whole ledger as its runs: registration, rules, cells, comparisons, claims. Never depends on how streams interleave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..events.errors import BadInput, UnreadableLedger
from ..events.model import (
    Cell,
    ClaimStated,
    DeviceCalibrated,
    Event,
    EvidenceCarried,
    HeadToHead,
    ProblemDeclared,
    Rule,
    RuleAdmitted,
    RuleProposed,
    RuleSeeded,
    RunRegistered,
    RunStopped,
    cell_stream,
)
from .cell import CellState
from .cell import fold as fold_cell
from .cell_plan import CellPlan

EXAMINATION = "exam"
"""How the streams of examinations begin; those of runs begin otherwise."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The cells that differ in their arm alone, and are therefore compared with one another."""

    problem: str
    contract: str
    pool: str
    repetition: int


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a ledger; `cells` is keyed by stream, `rules` (seeded, then admitted) and comparisons stand in recorded order."""

    run: str
    registration: RunRegistered | None = None
    rules: tuple[Rule, ...] = ()
    proposed: tuple[RuleProposed, ...] = ()
    carried: tuple[EvidenceCarried, ...] = ()
    calibration: DeviceCalibrated | None = None
    cells: dict[str, CellState] = {}
    head_to_heads: tuple[HeadToHead, ...] = ()
    claims: tuple[ClaimStated, ...] = ()
    stopped: str | None = None


Runs = Mapping[str, RunView]


def fold(records: Iterable[tuple[str, Event]], runs: Runs | None = None) -> dict[str, RunView]:
    """Runs by id, after the records (stream, event), each stream in its order; a shorter fold may be continued.

    Streams of examinations are passed over: they have rules and a calibration too, but no cells (examination.py folds them).
    UnreadableLedger where a cell's event lies in another stream than its own.
    """
    views = dict(runs or {})
    for stream, event in records:
        run = stream.partition("/")[0]
        if run.startswith(EXAMINATION):
            continue
        view = views.get(run) or RunView(run=run)
        cell = getattr(event, "cell", None)
        if isinstance(cell, Cell):
            views[run] = _in_cell(view, stream, cell, event)
        elif getattr(event, "run", None) == run:
            views[run] = _in_run(view, event)
    return views


def cell_plan(view: RunView, cell: Cell) -> CellPlan:
    """What was registered for a cell; BadInput where the run lacks its registration, calibration or the cell's problem."""
    registration, calibration = view.registration, view.calibration
    if registration is None or calibration is None:
        lacking = "RunRegistered" if registration is None else "DeviceCalibrated"
        raise BadInput(f"run {view.run!r} has no {lacking}, so its cells have no plan; register and calibrate it first")
    return CellPlan(
        run=view.run,
        cell=cell,
        rules=view.rules,
        chip=calibration.chip,
        problem=_problem(registration, cell.problem),
        policy=registration.policy,
        statistics=registration.statistics,
        max_rounds=registration.max_rounds,
        seed=registration.seed,
        carried=view.carried,
    )


def cell_state(view: RunView, cell: Cell) -> CellState:
    """What the cell's stream says so far; the empty state where it has not begun."""
    return view.cells.get(cell_stream(view.run, cell), CellState(cell=cell))


def groups(registration: RunRegistered) -> tuple[Group, ...]:
    """The groups of a plan, each once, in the order in which the plan first names them."""
    return tuple(dict.fromkeys(group_of(cell) for cell in registration.plan))


def group_of(cell: Cell) -> Group:
    """The group that a cell belongs to."""
    return Group(problem=cell.problem, contract=cell.contract, pool=cell.pool, repetition=cell.repetition)


def group_of_comparison(event: HeadToHead) -> Group:
    """The group that a comparison belongs to."""
    return Group(problem=event.problem, contract=event.contract, pool=event.pool, repetition=event.repetition)


def _problem(registration: RunRegistered, name: str) -> ProblemDeclared:
    for problem in registration.problems:
        if problem.name == name:
            return problem
    known = ", ".join(problem.name for problem in registration.problems)
    raise BadInput(f"run {registration.run!r} registered no problem {name!r}, only: {known}; use a cell of its plan")


def _in_cell(view: RunView, stream: str, cell: Cell, event: Event) -> RunView:
    if cell_stream(view.run, cell) != stream:
        raise UnreadableLedger(
            f"stream {stream!r} holds a {type(event).__name__} of the cell {cell_stream(view.run, cell)!r}; "
            "an event lies in its own cell's stream: run gpusolver replay --verify on this ledger"
        )
    state = fold_cell(view.cells.get(stream, CellState(cell=cell)), event)
    return replace(view, cells={**view.cells, stream: state})


def _in_run(view: RunView, event: Event) -> RunView:
    match event:
        case RunRegistered():
            return replace(view, registration=event)
        case RuleSeeded():
            return replace(view, rules=(*view.rules, event.rule))
        case RuleProposed():
            return replace(view, proposed=(*view.proposed, event))
        case RuleAdmitted():
            admitted = (
                p.rule for p in view.proposed if (p.rule.name, p.rule.version) == (event.rule, event.rule_version)
            )
            return replace(view, rules=(*view.rules, *admitted))
        case EvidenceCarried():
            return replace(view, carried=(*view.carried, event))
        case DeviceCalibrated():
            return replace(view, calibration=event)
        case HeadToHead():
            return replace(view, head_to_heads=(*view.head_to_heads, event))
        case ClaimStated():
            return replace(view, claims=(*view.claims, event))
        case RunStopped():
            return replace(view, stopped=event.reason)
        case _:
            return view
