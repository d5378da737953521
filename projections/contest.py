"""What each arm of a group took to get to the best kernel that any of them found, beside the best order in hindsight. Never measures or decides."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from math import log

import msgspec

from .cell import CellState
from .runs import Group, RunView, cell_state, group_of, groups

Seconds = Mapping[tuple[str, int], float]
"""Sampled GPU seconds by (cell stream, round)."""


class Oracle(msgspec.Struct, frozen=True, kw_only=True):
    """The fewest recorded FASTER rounds of any arms of the group, one after the other, that lead to the best kernel."""

    rounds: int
    gpu_s: float
    time_us: float


class ArmCourse(msgspec.Struct, frozen=True, kw_only=True):
    """One arm's way. A kernel within the contest's margin of the best counts as the best: its ratio is 1. `reached` is the first
    round after which the arm held such a kernel, None: it never did.

    `rounds_to_best` counts up to there, or the whole budget where it never got there, and so does `gpu_s_to_best`, which is None then:
    what was not reached has no price. `wasted` are judged rounds without a FASTER. `ratio` = its last time / the best time. `regret` is the mean over
    the budget's rounds of ln(time then / best time), an arm that has stopped keeping its last kernel.
    """

    arm: str
    rounds: int
    wasted: int
    inert: int
    reached: int | None
    rounds_to_best: int
    gpu_s_to_best: float | None
    gpu_s: float
    time_us: float
    ratio: float
    regret: float


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """The arms of one group in the plan's order. `margin` is the registered one, or the registered multiple of the largest noise
    floor of their last kernels where that is more.
    """

    group: Group
    budget: int
    margin: float
    start_us: float
    oracle: Oracle
    arms: tuple[ArmCourse, ...]


def contests(view: RunView, seconds: Seconds) -> tuple[Contest, ...]:
    """Every group of the run whose arms have all ended and whose start came to a profile, in the plan's order."""
    if view.registration is None:
        return ()
    found = []
    for group in groups(view.registration):
        streams = {
            f"{view.run}/{c.problem}/{c.contract}/{c.pool}/{c.arm}/{c.repetition}": cell_state(view, c)
            for c in view.registration.plan
            if group_of(c) == group
        }
        if all(state.stopped is not None and _last(state) is not None for state in streams.values()):
            statistics = view.registration.statistics
            floors = [state.floors.get(state.incumbent or "", 0.0) for state in streams.values()]
            margin = max(statistics.margin, statistics.floor_multiple * max(floors))
            found.append(_contest(group, streams, view.registration.max_rounds, margin, seconds))
    return tuple(found)


def _contest(group: Group, streams: Mapping[str, CellState], budget: int, margin: float, seconds: Seconds) -> Contest:
    best = min(time for state in streams.values() if (time := _last(state)) is not None)
    starts = [time for state in streams.values() if (time := _time(state, state.start)) is not None]
    return Contest(
        group=group,
        budget=budget,
        margin=margin,
        start_us=min(starts),
        oracle=_oracle(streams, best * (1 + margin), seconds),
        arms=tuple(_course(stream, state, best, margin, budget, seconds) for stream, state in streams.items()),
    )


def _course(stream: str, state: CellState, best: float, margin: float, budget: int, seconds: Seconds) -> ArmCourse:
    after = [_time(state, state.start), *(_time(state, judged.next_incumbent) for judged in state.rounds)]
    times = [time for time in after if time is not None]
    assert len(times) == len(after)  # an incumbent was profiled, or it would not be one
    ratios = [1.0 if time <= best * (1 + margin) else time / best for time in times]
    reached = ratios.index(1.0) if 1.0 in ratios else None
    costs = [seconds.get((stream, judged.round), 0.0) for judged in state.rounds]
    held = [*ratios[1:], *[ratios[-1]] * (budget - len(state.rounds))]
    return ArmCourse(
        arm=state.cell.arm,
        rounds=len(state.rounds),
        wasted=sum(judged.verdict != "FASTER" for judged in state.rounds),
        inert=sum(judged.inert for judged in state.rounds),
        reached=reached,
        rounds_to_best=budget if reached is None else reached,
        gpu_s_to_best=None if reached is None else sum(costs[:reached]),
        gpu_s=sum(costs),
        time_us=times[-1],
        ratio=ratios[-1],
        regret=sum(map(log, held)) / budget,
    )


def _oracle(streams: Mapping[str, CellState], goal_us: float, seconds: Seconds) -> Oracle:
    """Shortest way over (rounds, seconds) from the common start to a kernel that is at or under the goal in some cell."""
    edges: dict[str, list[tuple[float, str]]] = {}
    times: dict[str, float] = {}
    for stream, state in streams.items():
        for source in state.signals:
            time = _time(state, source)
            if time is not None:
                times[source] = min(time, times.get(source, time))
        for judged in state.rounds:
            if judged.verdict == "FASTER":
                cost = seconds.get((stream, judged.round), 0.0)
                edges.setdefault(judged.incumbent, []).append((cost, judged.candidate))
    waiting = [(0, 0.0, source) for source in _starts(streams.values())]
    seen: set[str] = set()
    while waiting:
        rounds, spent, source = heapq.heappop(waiting)
        if times[source] <= goal_us:
            return Oracle(rounds=rounds, gpu_s=spent, time_us=times[source])
        if source not in seen:
            seen.add(source)
            for cost, candidate in edges.get(source, ()):
                heapq.heappush(waiting, (rounds + 1, spent + cost, candidate))
    raise AssertionError("the arm that holds the best kernel got there by FASTER rounds")


def _starts(states: Iterable[CellState]) -> set[str]:
    return {state.start for state in states if state.start is not None}


def _last(state: CellState) -> float | None:
    return _time(state, state.incumbent)


def _time(state: CellState, source: str | None) -> float | None:
    return None if source is None else state.signals.get(source, {}).get("time_us")
