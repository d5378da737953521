"""The dominant launch and what limits how many of its blocks an SM holds (FORMAT.md 6.3). Never guesses a missing limit."""

from __future__ import annotations

from math import floor, prod
from typing import Any

from .artifacts import Kernel, Launches
from .calibration import DeviceLimits
from .extras import Timeline
from .partial import Number, div, smallest, times

LANES = 32
_REGISTERS_PER_UNIT, _SHARED_PER_UNIT = 256, 128


def dominant(launches: Launches, timeline: Timeline | None) -> Kernel | None:
    """The only launch, or the one with the largest sum of durations over the timeline's calls; None where that cannot be told."""
    kernels = launches.kernels
    if not launches.complete or not kernels:
        return None
    if len(kernels) == 1:
        return kernels[0]
    if timeline is None or any(len(call) != len(kernels) for call in timeline.calls):
        return None
    sums = [sum(call[i][1] - call[i][0] for call in timeline.calls) for i in range(len(kernels))]
    return kernels[sums.index(max(sums))]


def occupancy(launch: Kernel | None, limits: DeviceLimits) -> dict[str, Number]:
    """Shape of the launch, the four limits, and what follows from them; none of it without a launch that states its threads."""
    threads = None if launch is None else _product(launch.block)
    if launch is None or not threads:
        return {}
    blocks, warps = _product(launch.grid), _units(threads, LANES)
    four: dict[str, Number] = {
        "limit_warps": limits.warps_per_sm // warps,
        "limit_blocks": limits.blocks_per_sm,
        "limit_registers": _by_registers(launch, warps, limits),
        "limit_shared": _by_shared(launch, limits),
    }
    resident = smallest(*four.values())
    waves = div(blocks, times(limits.sms, resident))
    return {
        "block_threads": threads,
        "grid_blocks": blocks,
        "idle_lane_frac": 1 - threads / (LANES * warps),
        **four,
        "theoretical_occupancy": div(times(resident, warps), limits.warps_per_sm),
        "waves": waves,
        "tail_frac": _tail(waves),
        "sm_use_frac": None if blocks is None else min(1, blocks / limits.sms),
    }


def _tail(waves: float | None) -> Number:
    if waves is None:
        return None
    return 1 / (1 + floor(waves)) if waves > 1 and not waves.is_integer() else 0


def _by_registers(launch: Kernel, warps: int, limits: DeviceLimits) -> int | None:
    if launch.registers is None or launch.registers <= 0:
        return None
    per_warp = _REGISTERS_PER_UNIT * _units(launch.registers * LANES, _REGISTERS_PER_UNIT)
    return 4 * ((limits.registers_per_sm // 4) // per_warp) // warps


def _by_shared(launch: Kernel, limits: DeviceLimits) -> int | None:
    if launch.shared is None:
        return None
    static = 0 if launch.static_shared is None and launch.language == "triton" else launch.static_shared
    if static is None:
        return None
    held = _count(launch.shared) + static + limits.shared_reserved
    return limits.shared_per_sm // (_SHARED_PER_UNIT * _units(held, _SHARED_PER_UNIT))


def _product(sizes: Any) -> int | None:
    return None if sizes is None else prod(_count(size) for size in sizes)


def _count(value: Any) -> int:
    """A launch list's size as it must be. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a number from 0 in a launch list, found {value!r}")
    return value


def _units(amount: int, unit: int) -> int:
    """How many units an amount takes, rounded up."""
    return -(-amount // unit)
