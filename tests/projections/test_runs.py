"""The fold of a whole ledger: streams in any interleaving, cut anywhere, give the same runs."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusolver.engine.rules import seed_rules
from gpusolver.events.errors import BadInput, UnreadableLedger
from gpusolver.events.model import Event, LedgerSealed, cell_stream
from gpusolver.projections.cell import CellState
from gpusolver.projections.runs import cell_plan, cell_state, fold, groups

from .support import (
    POLICY,
    T4,
    Outcome,
    World,
    cell_of,
    context_of,
    head_to_head,
    plan_of,
    round_zero,
    run_stream,
    simulate,
    stop,
)

CELLS = tuple(cell_of("fp32", arm, repetition=repetition) for repetition in (1, 2) for arm in ("off", "on"))
SIGNALS = {"weight": 1.0, "occupancy": 0.25, "registers": 128.0}
WORLD = World({"start": SIGNALS}, lambda firing: Outcome("SAME", "capped"), {"start": context_of(T4)})

STREAMS: dict[str, list[Event]] = {
    "run1": [*run_stream(CELLS, seed_rules()), head_to_head("endpoint", 1.5), stop(None, "plan completed")],
    "run2": run_stream(CELLS[:1], seed_rules(), run="run2"),
    **{cell_stream("run1", cell): simulate(plan_of(cell, max_rounds=6), WORLD)[0] for cell in CELLS},
}


def interleaved(random: Random) -> list[tuple[str, Event]]:
    """All streams, each in its own order, mixed."""
    turns = [stream for stream, events in STREAMS.items() for _ in events]
    random.shuffle(turns)
    sources = {stream: iter(events) for stream, events in STREAMS.items()}
    return [(stream, next(sources[stream])) for stream in turns]


ONE_BY_ONE = fold((stream, event) for stream, events in STREAMS.items() for event in events)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.floats(0, 1))
def test_interleaving_and_cuts_do_not_matter(random: Random, where: float) -> None:
    records = interleaved(random)
    split = int(where * len(records))
    first = fold(records[:split])
    assert fold(records) == fold(records[split:], first) == ONE_BY_ONE
    assert first == fold(records[:split])


def test_what_a_run_holds() -> None:
    view = ONE_BY_ONE["run1"]
    assert view.rules == seed_rules()
    assert view.registration is not None and view.registration.plan == CELLS
    assert view.calibration is not None and view.calibration.copy_gbps == 1300.0
    assert (len(view.head_to_heads), view.claims, view.stopped) == (1, (), "plan completed")
    assert set(view.cells) == {cell_stream("run1", cell) for cell in CELLS}
    assert [len(cell_state(view, cell).rounds) for cell in CELLS] == [6, 4, 6, 4]
    assert [(group.problem, group.repetition) for group in groups(view.registration)] == [("fp32", 1), ("fp32", 2)]


def test_runs_are_kept_apart() -> None:
    """run2 registered one of the same cells and never began it."""
    view = ONE_BY_ONE["run2"]
    assert (view.cells, view.stopped, view.head_to_heads) == ({}, None, ())
    assert cell_state(view, CELLS[0]) == CellState(cell=CELLS[0])


def test_the_plan_of_a_cell() -> None:
    plan = cell_plan(ONE_BY_ONE["run1"], CELLS[0])
    assert (plan.run, plan.cell, plan.policy, plan.max_rounds) == ("run1", CELLS[0], POLICY, 12)
    assert (plan.problem.name, plan.rules) == ("fp32", seed_rules())


def test_a_cell_has_no_plan_before_it_is_registered_and_calibrated() -> None:
    head = run_stream(CELLS, seed_rules())
    with pytest.raises(BadInput, match="'run1' has no RunRegistered"):
        cell_plan(fold([("run1", head[1])])["run1"], CELLS[0])
    with pytest.raises(BadInput, match="'run1' has no DeviceCalibrated"):
        cell_plan(fold(("run1", event) for event in head[:-1])["run1"], CELLS[0])
    with pytest.raises(BadInput, match="registered no problem 'gone', only: fp32"):
        cell_plan(ONE_BY_ONE["run1"], cell_of("gone"))


def test_an_event_in_another_cells_stream_is_refused() -> None:
    strayed = round_zero(CELLS[0], "start", {})[0]
    with pytest.raises(
        UnreadableLedger, match="holds a RoundAttempted of the cell 'run1/fp32/tf32-allowed/flags/off/1'"
    ):
        fold([(cell_stream("run1", CELLS[1]), strayed)])


def test_a_seal_belongs_to_no_run() -> None:
    assert fold([("run1", LedgerSealed(size=1, root="0" * 64, note="n"))]) == {}
