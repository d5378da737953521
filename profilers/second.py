"""The second set of signals (replay/FORMAT.md 6.3): there only where the device's limits were measured. Guesses nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..events.model import ProblemDeclared
from . import occupancy
from .artifacts import (
    Artifact,
    Calibration,
    Compiled,
    Counters,
    DeviceLimits,
    Energy,
    Launches,
    Product,
    Samples,
    Timeline,
    decode,
)
from .chips import SPLIT_PRODUCTS
from .counted import counter_signals, over
from .intervals import b_times, lower_median
from .timeline import compiled_signals, energy_signals, timeline_signals, warm_signals

Number = int | float | None
ROLES: dict[str, type[Artifact]] = {"timeline": Timeline, "warm": Samples, "compiled": Compiled, "energy": Energy}
# NVML's bits for a power cap, a hardware slowdown, a thermal one in software or hardware, and a power brake.
THROTTLES = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def second(
    problem: ProblemDeclared,
    allowed: tuple[str, ...],
    copy_gbps: float,
    calibration: Calibration,
    samples: Samples,
    launches: Launches | None,
    counters: Counters | None,
    extras: Mapping[str, bytes],
    first: Mapping[str, Number],
) -> dict[str, Number]:
    """Everything of the second set that its inputs allow; `allowed` are the contract's paths, `first` the first set's signals."""
    limits, times = calibration.limits, sorted(b_times(samples))
    if limits is None:
        return {}
    time = lower_median(times)
    read = {role: decode(ROLES[role], raw) for role, raw in extras.items() if role in ROLES}
    timeline = read.get("timeline")
    launch = occupancy.dominant(launches, timeline if isinstance(timeline, Timeline) else None)
    found = _ceiling(problem, allowed, copy_gbps, calibration, time) | _quality(samples, times, limits)
    found |= occupancy.signals(launch, limits)
    theory, seen = found.get("theoretical_occupancy"), first.get("occupancy")
    if theory is not None and seen is not None and first.get("kernel_count") == 1:
        found["occupancy_gap"] = theory - seen
    if counters is not None:
        l2 = None if calibration.l2 is None else calibration.l2.bytes / lower_median(calibration.l2.ns)
        found |= counter_signals(
            counters.metrics,
            time,
            l2,
            tflops(calibration.gemm_fp32),
            first.get("tensor_inst"),
            first.get("tensor_frac"),
        )
    return found | _read(read, time)


def _read(read: Mapping[str, Artifact], time: int) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for artifact in read.values():
        match artifact:
            case Timeline():
                found |= timeline_signals(artifact, time)
            case Samples():
                found |= warm_signals(artifact, time)
            case Compiled():
                found |= compiled_signals(artifact)
            case Energy():
                found |= energy_signals(artifact)
    return found


def tflops(product: Product | None) -> float | None:
    """Measured rate of a library product."""
    return None if product is None else product.flop / lower_median(product.ns) / 1000


def _ceiling(
    problem: ProblemDeclared, allowed: tuple[str, ...], copy_gbps: float, calibration: Calibration, time: int
) -> dict[str, Number]:
    """Time against the measured ceilings, and the rate against the fastest path that the contract allows."""
    by_path = {"fp32": calibration.gemm_fp32, "tf32": calibration.gemm_tf32, "bf16": calibration.gemm_bf16}
    rates = {path: tflops(found) for path, found in by_path.items()}
    rates["tf32x3"] = over(rates["tf32"], SPLIT_PRODUCTS)
    top = max((rate for path in allowed if (rate := rates.get(path)) is not None), default=None)
    if top is None:
        return {}
    by_bytes = over(problem.min_bytes, copy_gbps)
    ceiling = None if by_bytes is None else max(by_bytes, problem.flops / (top * 1000)) / 1000
    return {
        "ceiling_us": ceiling,
        "ceiling_headroom": over(time / 1000, ceiling),
        "rate_frac": (problem.flops / time) / (top * 1000),
    }


def _quality(samples: Samples, times: list[int], limits: DeviceLimits) -> dict[str, Number]:
    """How much the samples spread, and whether the clock was held down around them."""
    last = len(times) - 1
    found: dict[str, Number] = {"spread": (times[3 * last // 4] - times[last // 4]) / lower_median(times)}
    states = [state for state in (samples.before, samples.after) if state is not None]
    bits = [int(state.throttle_bits) for state in states if state.throttle_bits is not None]
    clocks = [state.sm_clock_mhz for state in states if state.sm_clock_mhz is not None]
    if len(bits) == 2:
        found["throttled"] = int(any(value & THROTTLES for value in bits))
    if samples.throttled_ns is not None and samples.wall_s:
        found["throttled_frac"] = samples.throttled_ns / 1e9 / samples.wall_s
    if len(clocks) == 2:
        found["sm_clock_frac"] = min(clocks) / limits.sm_clock_mhz
    return found
