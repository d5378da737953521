"""What the arms of a run came to, as rows for people. Never decides anything, and never mixes contracts."""

from __future__ import annotations

import msgspec

from ..events.model import Cell, HeadToHead
from .cell import CellState
from .claims import median_and_lower
from .runs import Group, RunView, cell_state, group_of, groups


class ArmRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell's outcome. Times are the latest median of the kernel in microseconds, None where it was never profiled.

    `rounds` counts judged rounds, `misfires` those that counted as failures, `neutral` those that counted for nothing;
    `stop` is None while the cell goes on.
    """

    arm: str
    rounds: int
    misfires: int
    neutral: int
    interrupted: int
    retired: tuple[str, ...]
    promoted: tuple[str, ...]
    start_us: float | None
    end_us: float | None
    stop: str | None
    stop_rule: str | None


class AblationRow(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of one group in the plan's order, and its head-to-heads by comparison (of each the first with a median, else the last fault)."""

    group: Group
    arms: tuple[ArmRow, ...]
    head_to_heads: dict[str, HeadToHead]


class BestKernel(msgspec.Struct, frozen=True, kw_only=True):
    """The incumbent with the smallest measured time of a problem under one contract, and the cell that holds it."""

    problem: str
    contract: str
    source: str
    time_us: float
    cell: Cell


def rows(view: RunView) -> tuple[AblationRow, ...]:
    """The run's ablation in the plan's order; empty where the run was never registered."""
    if view.registration is None:
        return ()
    plan = view.registration.plan
    return tuple(
        AblationRow(
            group=group,
            arms=tuple(arm_row(cell_state(view, cell)) for cell in plan if group_of(cell) == group),
            head_to_heads=_comparisons(view, group),
        )
        for group in groups(view.registration)
    )


def arm_row(state: CellState) -> ArmRow:
    """What one cell came to so far."""
    credits = [judged.credit for judged in state.rounds]
    return ArmRow(
        arm=state.cell.arm,
        rounds=len(credits),
        misfires=credits.count("failure"),
        neutral=credits.count("neutral"),
        interrupted=state.interrupted,
        retired=tuple(sorted({rule for rule, _, _ in state.retired})),
        promoted=tuple(sorted({rule for rule, _ in state.promoted})),
        start_us=_time_us(state, state.start),
        end_us=_time_us(state, state.incumbent),
        stop=None if state.stopped is None else state.stopped.reason,
        stop_rule=None if state.stopped is None else state.stopped.rule,
    )


def best_kernels(view: RunView) -> tuple[BestKernel, ...]:
    """The fastest incumbent of each (problem, contract), sorted by both; the smaller stream name wins a tie."""
    best: dict[tuple[str, str], BestKernel] = {}
    for _, state in sorted(view.cells.items()):
        time_us = _time_us(state, state.incumbent)
        key = (state.cell.problem, state.cell.contract)
        if state.incumbent is not None and time_us is not None and (key not in best or time_us < best[key].time_us):
            best[key] = BestKernel(
                problem=key[0], contract=key[1], source=state.incumbent, time_us=time_us, cell=state.cell
            )
    return tuple(best[key] for key in sorted(best))


def _comparisons(view: RunView, group: Group) -> dict[str, HeadToHead]:
    chosen: dict[str, HeadToHead] = {}
    for entry in view.head_to_heads:
        of = Group(problem=entry.problem, contract=entry.contract, pool=entry.pool, repetition=entry.repetition)
        settled = entry.comparison in chosen and median_and_lower(chosen[entry.comparison]) is not None
        if of == group and not settled:
            chosen[entry.comparison] = entry
    return chosen


def _time_us(state: CellState, source: str | None) -> float | None:
    return None if source is None else state.signals.get(source, {}).get("time_us")
