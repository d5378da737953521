"""The second set of signals of FORMAT.md 6.3, there only where the calibration states the device's limits. Never fills in a value."""

from __future__ import annotations

from ..events.model import ProblemDeclared
from .artifacts import Counters, Launches, Samples
from .calibration import Calibration, DeviceLimits
from .derive_counted import counted, product_rate
from .derive_occupancy import dominant, occupancy
from .derive_timeline import beside
from .extras import Extras
from .partial import Number, div, largest, less, times
from .statistic import lower_median

THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def second(
    problem: ProblemDeclared,
    allowed: tuple[str, ...],
    calibration: Calibration,
    ceiling: float,
    samples: Samples,
    launches: Launches,
    counters: Counters | None,
    extras: Extras,
    first: dict[str, float],
) -> dict[str, Number]:
    """Every signal that its inputs allow, None for the others; `first`: the first set, `allowed`: the contract's paths, `ceiling`: the copy rate in GB/s."""
    limits = calibration.limits
    if limits is None:
        return {}
    t = lower_median(samples.right()) if samples.blocks else None
    found: dict[str, Number] = {
        **_ceilings(problem, allowed, calibration, ceiling, t, first),
        **_steadiness(samples, t, limits),
        **occupancy(dominant(launches, extras.timeline), limits),
        **counted({} if counters is None else counters.metrics, t, calibration, first),
        **beside(extras, t),
    }
    alone = first.get("kernel_count") == 1
    found["occupancy_gap"] = less(found.get("theoretical_occupancy"), first.get("occupancy")) if alone else None
    return found


def _ceilings(
    problem: ProblemDeclared,
    allowed: tuple[str, ...],
    calibration: Calibration,
    ceiling: float,
    t: int | None,
    first: dict[str, float],
) -> dict[str, Number]:
    top = times(largest(product_rate(calibration, path) for path in allowed), 1000)
    by_bytes, by_flops = div(problem.min_bytes, ceiling), div(problem.flops, top)
    bound = None if by_bytes is None or by_flops is None else max(by_bytes, by_flops) / 1000
    return {
        "ceiling_us": bound,
        "ceiling_headroom": div(first.get("time_us"), bound),
        "rate_frac": div(div(problem.flops, t), top),
    }


def _steadiness(samples: Samples, t: int | None, limits: DeviceLimits) -> dict[str, Number]:
    b = sorted(samples.right())
    n = len(b)
    before, after = samples.telemetry()
    bits, clocks = (before.bits(), after.bits()), (before.sm_clock_mhz, after.sm_clock_mhz)
    known = bits[0] is not None and bits[1] is not None
    held, wall = samples.held_down()
    slowest = None if clocks[0] is None or clocks[1] is None else min(clocks[0], clocks[1])
    return {
        "spread": div(b[(3 * (n - 1)) // 4] - b[(n - 1) // 4], t) if b else None,
        "throttled": int(any((found or 0) & THROTTLED for found in bits)) if known else None,
        "throttled_frac": div(None if held is None else held / 1e9, wall),
        "sm_clock_frac": div(slowest, limits.sm_clock_mhz),
    }
