"""Rows for people, from whole made-up cells."""

from __future__ import annotations

from gpusolver.engine.rules import seed_rules
from gpusolver.events.model import Event, RuleFired, cell_stream
from gpusolver.projections.ablation import best_kernels, rows
from gpusolver.projections.runs import RunView, fold

from .support import Outcome, World, cell_of, context_of, head_to_head, plan_of, run_stream, simulate

CELLS = (cell_of(arm="off"), cell_of(arm="on"))
EAGER = {"time_us": 200.0, "dtype_bits": 32.0, "tensor_active": 0.0, "load_eff": 0.5}
DONE = {"time_us": 50.0, "useful_bw_frac": 0.9}


def outcome(firing: RuleFired) -> Outcome:
    """One ambiguous round, then flat ones, until `uncoalesced` is asked."""
    if firing.rule == "uncoalesced":
        return Outcome("FASTER", "coalesced")
    return Outcome("AMBIGUOUS" if firing.round == 1 else "SAME", "tf32")


def view_of(*extra: Event) -> RunView:
    contexts = {name: context_of() for name in ("start", "coalesced")}
    world = World({"start": EAGER, "coalesced": DONE}, outcome, contexts)
    records: list[tuple[str, Event]] = [("run1", event) for event in (*run_stream(CELLS, seed_rules()), *extra)]
    for cell in CELLS:
        stream = cell_stream("run1", cell)
        records += [(stream, event) for event in simulate(plan_of(cell, max_rounds=8), world)[0]]
    return fold(records)["run1"]


def test_arms_side_by_side() -> None:
    """OFF: 8 rounds, 7 misfires. ON: 1 neutral, 4 misfires, 1 success, then the memory roof at a quarter of the time."""
    (row,) = rows(view_of())
    off, on = row.arms
    assert (off.arm, off.rounds, off.misfires, off.neutral, off.retired) == ("off", 8, 7, 1, ())
    assert (off.start_us, off.end_us, off.stop, off.stop_rule) == (200.0, 200.0, "rounds exhausted", None)
    assert (on.arm, on.rounds, on.misfires, on.neutral, on.retired) == ("on", 6, 4, 1, ("fp32_no_tensorcore",))
    assert (on.start_us, on.end_us, on.stop, on.stop_rule) == (200.0, 50.0, "stop rule", "memory_saturated")
    assert (on.promoted, on.interrupted) == ((), 0)


def test_a_cell_that_has_not_begun_is_a_row_too() -> None:
    view = fold(("run1", event) for event in run_stream(CELLS, seed_rules()))["run1"]
    (row,) = rows(view)
    assert [(arm.arm, arm.rounds, arm.start_us, arm.end_us, arm.stop) for arm in row.arms] == [
        ("off", 0, None, None, None),
        ("on", 0, None, None, None),
    ]
    assert (row.head_to_heads, best_kernels(view)) == ({}, ())
    assert rows(RunView(run="run1")) == ()


def test_the_first_measured_comparison_stands() -> None:
    """A fault gives way to a measurement, a measurement to nothing; another repetition has a row of its own."""
    fault, good, better = (
        head_to_head("endpoint", None, outcome="timeout"),
        head_to_head("endpoint", 4.0),
        head_to_head("endpoint", 5.0),
    )
    (row,) = rows(view_of(fault, good, better, head_to_head("total", 9.0, repetition=2)))
    assert row.head_to_heads == {"endpoint": good}


def test_best_kernel() -> None:
    (best,) = best_kernels(view_of())
    assert (best.problem, best.contract, best.source, best.time_us, best.cell) == (
        "toy",
        "tf32-allowed",
        "coalesced",
        50.0,
        CELLS[1],
    )
