"""Launch shapes on an H200: every value worked by hand from CUDA's occupancy rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.profilers.artifacts import DeviceLimits, Launch, Launches, Timeline
from gpusolver.profilers.occupancy import dominant, signals

H200 = DeviceLimits(
    sms=132, warps_per_sm=64, blocks_per_sm=32, registers_per_sm=65536, shared_per_sm=233472, shared_reserved=1024,
    sm_clock_mhz=1980,
)  # fmt: skip


def launch(**changes: Any) -> Launch:
    known: dict[str, Any] = {
        "name": "k", "language": "library", "grid": (264, 1, 1), "block": (256, 1, 1), "shared": 0, "static_shared": 0, "registers": 32,
    }  # fmt: skip
    return Launch(**{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "blocks", "occupancy"),
    [
        # 8 warps a block: 64 / 8 = 8 blocks by warps; 32 registers are 1024 a warp, 16 warps a quarter, 64 warps: 8 blocks.
        ({}, {"limit_warps": 8, "limit_blocks": 32, "limit_registers": 8, "limit_shared": 228}, 1.0),
        # 64 registers are 2048 a warp: 8 a quarter, 32 warps, 4 blocks: half.
        ({"registers": 64}, {"limit_registers": 4}, 0.5),
        # 65 registers are 2080, rounded up to 2304 a warp: 7 a quarter, 28 warps, 3 whole blocks of 8: 24 of 64 warps.
        ({"registers": 65}, {"limit_registers": 3}, 0.375),
        # 255 registers are 8160, rounded to 8192: 2 a quarter, 8 warps: one block.
        ({"registers": 255}, {"limit_registers": 1}, 0.125),
        # 48 KiB and the reserved 1 KiB are 50176 bytes: 4 in 233472.
        ({"shared": 49152}, {"limit_shared": 4}, 0.5),
        # The same, half of it static.
        ({"shared": 24576, "static_shared": 24576}, {"limit_shared": 4}, 0.5),
        # Both at once: registers and shared memory each hold 4 of the 8 blocks that the warps would allow.
        (
            {"registers": 64, "shared": 49152},
            {"limit_warps": 8, "limit_blocks": 32, "limit_registers": 4, "limit_shared": 4},
            0.5,
        ),
        # 100 KiB: 103424 bytes with the reserved 1 KiB, twice in 233472.
        ({"shared": 102400}, {"limit_shared": 2}, 0.25),
        # 1 warp a block: 32 blocks at most, 32 of 64 warps.
        ({"block": (32, 1, 1)}, {"limit_warps": 64, "limit_blocks": 32}, 0.5),
        # 33 threads are two warps: 32 blocks by the table's 32, 64 warps.
        ({"block": (33, 1, 1)}, {"limit_warps": 32}, 1.0),
    ],
)
def test_blocks_by_limit(changes: dict[str, Any], blocks: dict[str, int], occupancy: float) -> None:
    found = signals(launch(**changes), H200)
    assert {name: found[name] for name in blocks} == blocks
    assert found["theoretical_occupancy"] == occupancy


def test_idle_lanes_of_the_last_warp() -> None:
    assert signals(launch(block=(33, 1, 1)), H200)["idle_lane_frac"] == 1 - 33 / 64
    assert signals(launch(block=(16, 16, 1)), H200)["idle_lane_frac"] == 0


@pytest.mark.parametrize(
    ("grid", "waves", "tail", "used"),
    [(1056, 1.0, 0, 1), (66, 0.0625, 0, 0.5), (1584, 1.5, 0.5, 1), (2112, 2.0, 0, 1), (10032, 9.5, 0.1, 1)],
)
def test_waves_and_tail(grid: int, waves: float, tail: float, used: float) -> None:
    """8 blocks on each of 132 multiprocessors are 1056 in a wave; a last wave of a half lasts as long as a whole one."""
    found = signals(launch(grid=(grid, 1, 1)), H200)
    assert (found["waves"], found["tail_frac"], found["sm_use_frac"]) == (waves, tail, used)


@given(st.integers(1, 1024), st.integers(1, 255), st.integers(0, 232448))
def test_as_many_blocks_as_fit_and_no_more(threads: int, registers: int, shared: int) -> None:
    """What the blocks take stays within a multiprocessor, and one more would not fit by some resource.

    Registers come in units of 256 to a warp, whose quarter of the file it cannot leave; shared memory comes in units of 128.
    """
    found = signals(launch(block=(threads, 1, 1), registers=registers, shared=shared), H200)
    warps = (threads + 31) // 32
    limits = [found[f"limit_{name}"] for name in ("warps", "blocks", "registers", "shared")]
    fit = min(limit for limit in limits if limit is not None)
    a_warp = -(-registers * 32 // 256) * 256
    a_block = -(-(shared + 1024) // 128) * 128

    def fits(blocks: float) -> bool:
        quarters = 4 * (16384 // a_warp)
        return blocks <= 32 and blocks * warps <= min(64, quarters) and blocks * a_block <= 233472

    assert fits(fit) and not fits(fit + 1)
    assert found["theoretical_occupancy"] == fit * warps / 64


def test_what_is_not_known_leaves_its_limit_and_all_that_follows_out() -> None:
    found = signals(launch(static_shared=None), H200)
    assert found["limit_shared"] is None and found["theoretical_occupancy"] is None and found["waves"] is None
    assert signals(launch(static_shared=None, language="triton"), H200)["limit_shared"] == 228
    assert signals(launch(registers=None), H200)["limit_registers"] is None
    assert signals(launch(registers=0), H200)["limit_registers"] is None
    assert "grid_blocks" not in signals(launch(grid=None), H200)
    assert signals(launch(block=None), H200) == {} == signals(None, H200)


def test_a_kernel_that_cannot_be_resident_has_no_waves() -> None:
    """2048 threads a block are 64 warps: one block; with 64 registers none fits."""
    found = signals(launch(block=(2048, 1, 1), registers=64), H200)
    assert found["limit_registers"] == 0 and found["theoretical_occupancy"] == 0 and found["waves"] is None


def test_the_dominant_launch_is_the_one_that_takes_longest() -> None:
    two = Launches(complete=True, kernels=(launch(name="a"), launch(name="b")))
    calls = (((0, 10, "a"), (20, 50, "b")), ((0, 70, "a"), (80, 120, "b")))
    assert dominant(two, Timeline(collector="torch_profiler", calls=calls)) == two.kernels[0]  # 80 against 70
    assert dominant(two, Timeline(collector="torch_profiler", calls=calls[:1])) == two.kernels[1]
    assert dominant(two, None) is None
    odd = Timeline(collector="nsys", calls=(calls[0], ((0, 1, "a"),)))
    assert dominant(two, odd) is None
    one = Launches(complete=True, kernels=two.kernels[:1])
    assert dominant(one, None) == two.kernels[0]
    assert dominant(Launches(complete=False, kernels=two.kernels[:1]), None) is None
    assert dominant(Launches(complete=True, kernels=()), None) is None
