"""Arms beside the oracle on whole made-up cells, every figure worked out by hand."""

from __future__ import annotations

from math import log

import pytest

from gpusolver.engine.rules import seed_rules
from gpusolver.events.model import Cell, Event, RuleFired, cell_stream
from gpusolver.projections.contest import Contest, contests
from gpusolver.projections.runs import RunView, fold

from .support import Outcome, World, cell_of, context_of, plan_of, run_stream, simulate

ARMS = ("off", "on", "off+tabu")
BUDGET = 12
SIGNALS = {"dtype_bits": 32.0, "tensor_active": 0.0, "load_eff": 0.5}
TIMES = {"start": 200.0, "half": 100.0, "quarter": 50.0, "same": 50.4}


def seconds(cells: tuple[Cell, ...]) -> dict[tuple[str, int], float]:
    """Round r of every cell took r seconds."""
    return {(cell_stream("run1", cell), r): float(r) for cell in cells for r in range(1, BUDGET + 1)}


def view_of(arms: tuple[str, ...], outcome: dict[tuple[str, str, int], Outcome]) -> tuple[RunView, tuple[Cell, ...]]:
    """`outcome` by (arm, rule, round); SAME and inert where nothing is said. Cells end after twelve rounds or where the table does."""
    cells = tuple(cell_of(arm=arm) for arm in arms)
    records: list[tuple[str, Event]] = [("run1", event) for event in run_stream(cells, seed_rules())]

    def said(firing: RuleFired) -> Outcome:
        return outcome.get((firing.cell.arm, firing.rule, firing.round), Outcome("SAME", "tf32", inert=True))

    for cell in cells:
        world = World(
            {name: {**SIGNALS, "time_us": time} for name, time in TIMES.items()},
            said,
            dict.fromkeys(TIMES, context_of()),
        )
        records += [
            (cell_stream("run1", cell), event) for event in simulate(plan_of(cell, max_rounds=BUDGET), world)[0]
        ]
    return fold(records)["run1"], cells


def contest_of(arms: tuple[str, ...], outcome: dict[tuple[str, str, int], Outcome]) -> Contest:
    view, cells = view_of(arms, outcome)
    (found,) = contests(view, seconds(cells))
    return found


WON = {
    # off never gets past TF32; on retires it after four rounds and then halves twice; tabu goes there in one step.
    ("on", "uncoalesced", 5): Outcome("FASTER", "half"),
    ("on", "uncoalesced", 6): Outcome("FASTER", "quarter"),
    ("off+tabu", "uncoalesced", 2): Outcome("FASTER", "same"),
}


def test_the_arms_by_hand() -> None:
    """ON: four inert rounds, 100 us, 50 us. OFF+TABU: one inert round, then 50.4 us, which is within 1 % of the best."""
    found = contest_of(ARMS, WON)
    off, on, tabu = found.arms
    assert (found.budget, found.start_us, found.margin) == (12, 200.0, 0.01)
    assert (off.rounds, off.wasted, off.inert, off.reached, off.rounds_to_best) == (12, 12, 12, None, 12)
    assert (off.time_us, off.ratio, off.gpu_s, off.gpu_s_to_best) == (200.0, 4.0, 78.0, None)
    assert off.regret == pytest.approx(log(4))
    assert (on.wasted, on.reached, on.rounds_to_best, on.time_us, on.ratio) == (on.rounds - 2, 6, 6, 50.0, 1.0)
    assert on.gpu_s_to_best == 1 + 2 + 3 + 4 + 5 + 6
    assert on.regret == pytest.approx((4 * log(4) + log(2)) / 12)
    assert (tabu.reached, tabu.ratio, tabu.gpu_s_to_best) == (2, 1.0, 3.0)
    assert tabu.regret == pytest.approx(log(4) / 12)


def test_the_oracle_takes_the_fewest_steps_of_any_arm() -> None:
    """One step, in the cell with memory: round 2, two seconds; without that arm two steps, rounds 5 and 6."""
    assert (contest_of(ARMS, WON).oracle.rounds, contest_of(ARMS, WON).oracle.gpu_s) == (1, 2.0)
    alone = contest_of(("off", "on"), WON).oracle
    assert (alone.rounds, alone.gpu_s, alone.time_us) == (2, 11.0, 50.0)


def test_nothing_gained_leaves_the_oracle_at_the_start() -> None:
    found = contest_of(("off", "on"), {})
    assert (found.oracle.rounds, found.oracle.gpu_s, found.oracle.time_us) == (0, 0.0, 200.0)
    assert [(arm.reached, arm.ratio, arm.regret, arm.gpu_s_to_best) for arm in found.arms] == [(0, 1.0, 0.0, 0)] * 2


def test_a_group_that_has_not_ended_is_left_out() -> None:
    view, cells = view_of(("off", "on"), WON)
    stream = cell_stream("run1", cells[1])
    cut = RunView(run="run1", registration=view.registration, rules=view.rules, cells={**view.cells})
    cut.cells.pop(stream)
    assert contests(cut, {}) == ()
    assert contests(RunView(run="run1"), {}) == ()
