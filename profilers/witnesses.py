"""What must bear out a FASTER beside its samples: outputs, the incumbent by itself, the wall clock, the counters. Measures nothing."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ..events.model import Bounds, Limits, Objective, Statistics, Value
from .artifacts import Calibration, Counters, Report, Samples, Wall
from .energies import keeps_up
from .gates import right
from .intervals import b_times, lower_median
from .metrics import CYCLES_ACTIVE

_PAIRS = 2.0
"""Two outputs within the limits of the answer are within twice the limits of each other."""


class Witnesses(Value, frozen=True):
    """Times in ns. `alone`: the incumbent in a process of its own; `walls`: a call of incumbent and candidate by another process's
    watch; `busy`: how long the SMs were active in a call of the candidate, by its counters; `fastest`: the least `alone` of the
    cell's incumbents so far. None = not there.
    """

    alone: float | None = None
    fastest: float | None = None
    walls: tuple[float | None, float | None] = (None, None)
    busy: float | None = None


def per_call(report: Report) -> float | None:
    """Wall-clock ns a call."""
    wall: Wall | None = report.wall
    return None if wall is None else wall.ns / wall.calls


def busy_ns(counters: Counters | None, calibration: Calibration) -> float | None:
    """Active SM cycles at the highest clock, in ns."""
    cycles = None if counters is None else counters.metrics.get(CYCLES_ACTIVE)
    if cycles is None or calibration.limits is None:
        return None
    return cycles / calibration.limits.sm_clock_mhz * 1000


def alone_ns(floor: Samples) -> int:
    """The incumbent's median beside itself alone."""
    return lower_median(b_times(floor))


def wrong_while_timed(statistics: Statistics, samples: Samples, limits: Limits) -> bool:
    """Whether an output of a timed call is not right, or was not looked at. Never without registered bounds."""
    if statistics.bounds is UNSET:
        return False
    seen = samples.outputs
    if seen is None:
        return True
    pairs = all(right(one, limits, _PAIRS) for one in seen.pairs)
    return not (pairs and all(right(one, limits) for end in seen.ends for one in end))


def doubt(statistics: Statistics, bounds: Bounds, samples: Samples, lower: float, seen: Witnesses) -> str | None:
    """Why a FASTER does not stand (replay/FORMAT.md 6.1, Bounds), the first reason that applies; `lower` is the interval's bound."""
    a, b = lower_median([t for block in samples.blocks for t in (block[0], block[3])]), lower_median(b_times(samples))
    before, after = seen.walls
    if before is None or after is None:
        return "no wall clock"
    if seen.alone is not None and a > (1 + bounds.alone) * seen.alone:
        return "the incumbent was slower beside the candidate than alone"
    late = after - b > max(0.0, before - a) + bounds.wall_slack_ns
    objective = statistics.objective
    if isinstance(objective, UnsetType):
        if seen.alone is not None and b >= seen.alone:
            return "not faster than the incumbent alone"
        # The interval is one of times, so its bound is the least gain in time that the watch must show.
        late = late and before < lower * after
    elif seen.fastest is not None and b > objective.bound * seen.fastest:
        return "over the latency bound"
    if late:
        return "the wall clock does not confirm it"
    if seen.busy is not None and b < bounds.busy * seen.busy:
        return "the counters do not confirm it"
    return _unfit(objective, samples)


def _unfit(objective: Objective | UnsetType, samples: Samples) -> str | None:
    """Whether a candidate cannot be called as often as the objective asks."""
    fits = isinstance(objective, UnsetType) or keeps_up(samples, objective)
    return None if fits else "too slow for the call rate"
