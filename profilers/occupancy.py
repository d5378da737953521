"""What a launch's shape allows: blocks per multiprocessor by each limit, occupancy, waves, idle lanes. Arithmetic of CUDA's occupancy rules only."""

from __future__ import annotations

from math import prod

import msgspec

from .artifacts import DeviceLimits, Launch, Launches, Timeline

Number = int | float | None
_WARP, _PARTITIONS, _REGISTER_UNIT, _SHARED_UNIT = 32, 4, 256, 128


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks of a launch that one multiprocessor can hold, by what limits them; None = not known."""

    warps: int
    blocks: int
    registers: int | None
    shared: int | None

    def least(self) -> int | None:
        """Blocks that fit, or None where a limit is not known."""
        if self.registers is None or self.shared is None:
            return None
        return min(self.warps, self.blocks, self.registers, self.shared)


def dominant(launches: Launches | None, timeline: Timeline | None) -> Launch | None:
    """The only launch, or the one that takes longest by the timeline, if that has the same launches in every call; else None."""
    if launches is None or not launches.complete or not launches.kernels:
        return None
    count = len(launches.kernels)
    if count == 1:
        return launches.kernels[0]
    if timeline is None or any(len(call) != count for call in timeline.calls):
        return None
    spent = [sum(call[index][1] - call[index][0] for call in timeline.calls) for index in range(count)]
    return launches.kernels[spent.index(max(spent))]


def held(launch: Launch, threads: int, limits: DeviceLimits) -> Held:
    """The four limits; registers are given to warps in units of 256 per quarter of a multiprocessor, shared memory in units of 128 bytes."""
    warps = _over(threads, _WARP)
    return Held(
        warps=limits.warps_per_sm // warps,
        blocks=limits.blocks_per_sm,
        registers=_by_registers(launch.registers, warps, limits),
        shared=_by_shared(launch, limits),
    )


def signals(launch: Launch | None, limits: DeviceLimits) -> dict[str, Number]:
    """The launch-shape signals of replay/FORMAT.md 6.3, second set."""
    if launch is None or launch.block is None:
        return {}
    threads = prod(launch.block)
    if threads < 1:
        return {}
    warps = _over(threads, _WARP)
    fits = held(launch, threads, limits)
    least = fits.least()
    return {
        "block_threads": threads,
        "idle_lane_frac": 1 - threads / (_WARP * warps),
        "limit_warps": fits.warps,
        "limit_blocks": fits.blocks,
        "limit_registers": fits.registers,
        "limit_shared": fits.shared,
        "theoretical_occupancy": None if least is None else least * warps / limits.warps_per_sm,
        **_grid(launch, least, limits),
    }


def _grid(launch: Launch, least: int | None, limits: DeviceLimits) -> dict[str, Number]:
    if launch.grid is None:
        return {}
    blocks = prod(launch.grid)
    waves = blocks / (limits.sms * least) if least else None
    return {
        "grid_blocks": blocks,
        "waves": waves,
        "tail_frac": None if waves is None else _tail(waves),
        "sm_use_frac": min(1, blocks / limits.sms),
    }


def _tail(waves: float) -> float:
    """Share of the time that the last, partial wave takes at worst; 0 where all waves are full or there is but one."""
    return 1 / (1 + int(waves)) if waves > 1 and waves != int(waves) else 0


def _by_registers(registers: int | None, warps: int, limits: DeviceLimits) -> int | None:
    if not registers or registers < 1:
        return None
    per_warp = _REGISTER_UNIT * _over(registers * _WARP, _REGISTER_UNIT)
    return (_PARTITIONS * ((limits.registers_per_sm // _PARTITIONS) // per_warp)) // warps


def _by_shared(launch: Launch, limits: DeviceLimits) -> int | None:
    static = 0 if launch.static_shared is None and launch.language == "triton" else launch.static_shared
    if launch.shared is None or static is None:
        return None
    taken = launch.shared + static + limits.shared_reserved
    units = _over(taken, _SHARED_UNIT)
    return limits.shared_per_sm // (_SHARED_UNIT * units) if units else None


def _over(value: int, unit: int) -> int:
    """How many units hold the value."""
    return -(-value // unit)
