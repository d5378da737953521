"""What must bear out a FASTER beside its interval (FORMAT.md 6.1, Bounds): outputs while timed, and witnesses. Never reads a ledger."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from ..events.model import Bounds, Limits, Objective, Statistics
from .artifacts import Counters, GateReport, OutputErrors, Samples
from .calibration import Calibration
from .objective import TOO_SLOW

WRONG_WHILE_TIMED = "wrong while timed"
NO_WALL = "no wall clock"
CROWDED = "the incumbent was slower beside the candidate than alone"
NOT_FASTER_ALONE = "not faster than the incumbent alone"
WALL_DENIES = "the wall clock does not confirm it"
COUNTERS_DENY = "the counters do not confirm it"
PAIRS_A_BLOCK = 2
_APART = 2.0
_CYCLES = "sm__cycles_active.avg"


class Witnesses(msgspec.Struct, frozen=True):
    """What a round's FASTER is held against, in ns: `alone` the incumbent against itself, `wall_a` and `wall_b` a call of incumbent and
    candidate by the watch (None: not watched), `active` the candidate's active SM cycles at the top clock (None: not counted),
    `fastest` the least of the cell's incumbents against themselves (None: not asked, as by latency).
    """

    alone: int
    wall_a: float | None
    wall_b: float | None
    active: float | None
    fastest: int | None = None


def within(errors: OutputErrors, limits: Limits, times: float = 1.0) -> bool:
    """Whether an output is right: finite where the other is, and both errors there and at most so many times the limits."""
    if errors.nonfinite > 0 or errors.rel_l2 is None or errors.max_rms is None:
        return False
    return errors.rel_l2 <= times * limits.rel_l2 and errors.max_rms <= times * limits.max_rms


def outputs_right(samples: Samples, limits: Limits) -> bool:
    """Whether the outputs of the timed calls are there, and all of them right."""
    seen = samples.outputs
    if seen is None or not seen.pairs or not seen.ends:
        return False
    pairs = all(within(pair, limits, _APART) for pair in seen.pairs)
    return pairs and all(within(side, limits) for end in seen.ends for side in end)


def right_so_far(samples: Samples, blocks: int, limits: Limits) -> bool:
    """The same after that many blocks of the samples. Which of the ends were there by then is not recorded, so none is asked."""
    seen = samples.outputs
    if seen is None or not seen.pairs or not seen.ends:
        return False
    return all(within(pair, limits, _APART) for pair in seen.pairs[: PAIRS_A_BLOCK * blocks])


def asks(statistics: Statistics, limits: Limits | None) -> Limits | None:
    """The limits for outputs while timed; None where no bounds are set. Raises ValueError where they are and no limits are known."""
    if isinstance(statistics.bounds, UnsetType):
        return None
    if limits is None:
        raise ValueError("bounds are set, and there are no limits to hold the outputs against")
    return limits


def wall(report: GateReport | None) -> float | None:
    """Wall-clock ns a call; None where there was no watch."""
    if report is None or report.wall is None:
        return None
    return report.wall.ns / report.wall.calls


def active(counters: Counters | None, calibration: Calibration) -> float | None:
    """ns that the SMs were active in a call, by their cycles at the top clock; None where either is not known."""
    cycles = None if counters is None else counters.metrics.get(_CYCLES)
    if cycles is None or calibration.limits is None:
        return None
    return cycles / calibration.limits.sm_clock_mhz * 1000


def doubt(
    bounds: Bounds, a: int, b: int, lower: float, seen: Witnesses, wanted: Objective | UnsetType = UNSET
) -> str | None:
    """Why a FASTER does not stand, the first reason of the page; None where it does. a, b: lower medians in ns; `lower`: the interval's."""
    if seen.wall_a is None or seen.wall_b is None:
        return NO_WALL
    if a > (1 + bounds.alone) * seen.alone:
        return CROWDED
    unseen = seen.wall_b - b > max(0, seen.wall_a - a) + bounds.wall_slack_ns
    if isinstance(wanted, UnsetType):
        if b >= seen.alone:
            return NOT_FASTER_ALONE
        if unseen and seen.wall_a < lower * seen.wall_b:
            return WALL_DENIES
    else:
        if b > wanted.bound * (seen.alone if seen.fastest is None else seen.fastest):
            return TOO_SLOW
        if unseen:
            return WALL_DENIES
    if seen.active is not None and b < bounds.busy * seen.active:
        return COUNTERS_DENY
    return None
