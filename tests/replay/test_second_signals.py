"""The second set of signals where an input is missing, at an edge, or another than in exam_world.py: values worked out by hand."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gpusolver.events.model import Chip
from gpusolver.replay.artifacts import Counters, Kernel, Launches, Samples
from gpusolver.replay.calibration import Calibration
from gpusolver.replay.derive_occupancy import dominant, occupancy
from gpusolver.replay.derive_signals import signals
from gpusolver.replay.extras import SHAPES, Energy, Extras, Timeline

from . import exam_world as world
from .exam_world import METRICS, SASS, SIGNALS
from .world import CHIP

Edit = dict[str, Any]


def derived(
    *,
    metrics: Edit | None = None,
    kernel: Edit | None = None,
    calibration: Edit | None = None,
    told: Edit | None = None,
    without: tuple[str, ...] = (),
    contract: str = "tf32-allowed",
    chip: Chip = CHIP,
    **extras: Any,
) -> dict[str, float]:
    """All signals of the examined kernel with some inputs replaced; `extras` by role, None to leave one out."""
    counted = {k: v for k, v in (METRICS | (metrics or {})).items() if k not in without}
    listed = world.launches("code", "ttir")
    listed["kernels"][0].update(kernel or {})
    given: dict[str, Any] = {
        "timeline": world.TIMELINE,
        "warm": world.samples(world.WARM, cache="warm"),
        "compiled": world.compiled("code"),
        "energy": world.ENERGY,
    } | extras
    return signals(
        world.PROBLEM,
        contract,
        chip,
        500.0,
        msgspec.convert(world.samples(world.AA) | (told or {}), Samples),
        msgspec.convert(listed, Launches),
        msgspec.convert(world.COUNTERS | {"metrics": counted}, Counters),
        msgspec.convert(copy.deepcopy(world.CALIBRATION) | (calibration or {}), Calibration),
        Extras(**{role: msgspec.convert(g, SHAPES[role]) for role, g in given.items() if g is not None}),
    )


def changed(found: dict[str, float]) -> dict[str, float | None]:
    """What differs from the signals of exam_world.py; None: no longer there."""
    return {n: found.get(n) for n in sorted(SIGNALS | found) if found.get(n) != SIGNALS.get(n)}


def test_the_examined_kernel() -> None:
    """Nothing replaced, nothing changed."""
    assert changed(derived()) == {}


def test_without_limits_there_is_no_second_set() -> None:
    """Whatever else was measured."""
    assert set(derived(calibration={"limits": None})) == set(world.FIRST)


def test_split_products_are_a_path_where_the_chip_states_them() -> None:
    """40 TFLOP/s of TF32 are 13.3 of float32: 8,000,000 FLOP take 600 ns, their bytes 800; in 2000 ns they run at 4 TFLOP/s."""
    splits = replace(CHIP, peaks_tflops=CHIP.peaks_tflops | {"tf32x3": 80 / 3})
    assert changed(derived(contract="fp32-strict", chip=splits)) == {"rate_frac": pytest.approx(0.3)}
    alone = derived(contract="fp32-strict", chip=splits, calibration={"gemm_tf32": None})
    assert changed(alone) == {"ceiling_us": 1.6, "ceiling_headroom": 1.25, "rate_frac": 0.8}


OCCUPANCY = [
    "block_threads",
    "grid_blocks",
    "idle_lane_frac",
    "limit_warps",
    "limit_blocks",
    "limit_registers",
    "limit_shared",
    "theoretical_occupancy",
    "waves",
    "tail_frac",
    "sm_use_frac",
    "occupancy_gap",
]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        # ceilings: at 5 TFLOP/s 8,000,000 FLOP take 1600 ns; of 10 by the data sheet 800
        (
            {"contract": "fp32-strict"},
            {"ceiling_us": 1.6, "ceiling_headroom": 1.25, "rate_frac": 0.8},
        ),
        ({"calibration": {"gemm_tf32": None}}, {"ceiling_us": 1.6, "ceiling_headroom": 1.25, "rate_frac": 0.8}),
        ({"calibration": {"gemm_fp32": None}}, {"fp32_exec_frac": None}),
        (
            {"calibration": {"gemm_fp32": None, "gemm_tf32": None}},
            {"ceiling_us": None, "ceiling_headroom": None, "rate_frac": None, "fp32_exec_frac": None},
        ),
        ({"calibration": {"gemm_bf16": {"flop": 10**9, "ns": [1]}}}, {}),  # no path of the contract
        ({"calibration": {"l2": None}}, {"l2_frac": None}),
        # steadiness
        ({"told": {"before": None}}, {"throttled": None, "sm_clock_frac": None}),
        ({"told": {"before": {"throttle_bits": 3, "sm_clock_mhz": 1000}}}, {"throttled": 0.0, "sm_clock_frac": 0.5}),
        ({"told": {"after": {"throttle_bits": 0x81, "sm_clock_mhz": 1950.0}}}, {"sm_clock_frac": 0.95}),
        ({"told": {"after": {"throttle_bits": 0}}}, {"sm_clock_frac": None}),
        ({"told": {"throttled_ns": 50_000_000, "wall_s": 0.25}}, {"throttled_frac": 0.2}),
        ({"told": {"throttled_ns": 50_000_000, "wall_s": 0}}, {}),
        ({"told": {"throttled_ns": 50_000_000}}, {}),
        # occupancy
        ({"kernel": {"registers": None}}, {n: None for n in ("limit_registers", "theoretical_occupancy", "waves", "tail_frac", "occupancy_gap", "registers")}),
        ({"kernel": {"registers": 0}}, {n: None for n in ("limit_registers", "theoretical_occupancy", "waves", "tail_frac", "occupancy_gap")} | {"registers": 0.0}),
        ({"kernel": {"language": "library"}}, {n: None for n in ("limit_shared", "theoretical_occupancy", "waves", "tail_frac", "occupancy_gap")}),
        # 40,000 + 8000 + 1024 bytes take 383 units of 128: four in 233,472; 50 blocks of 4 SMs by 4 are 3.125 waves
        (
            {"kernel": {"language": "library", "static_shared": 8000}},
            {"limit_shared": 4.0, "theoretical_occupancy": 12 / 64, "waves": 3.125, "tail_frac": 0.25, "occupancy_gap": 0.0},
        ),
        # 250,000 bytes fit no SM: no block is resident, and a wave of none has no length
        ({"kernel": {"shared": 250_000}}, {"limit_shared": 0.0, "theoretical_occupancy": 0.0, "waves": None, "tail_frac": None, "occupancy_gap": -0.1875}),
        ({"kernel": {"grid": [2, 1, 1]}}, {"grid_blocks": 2.0, "waves": 0.1, "tail_frac": 0.0, "sm_use_frac": 0.5}),
        ({"kernel": {"grid": [10, 2, 2]}}, {"grid_blocks": 40.0, "waves": 2.0, "tail_frac": 0.0}),
        ({"kernel": {"grid": None}}, {n: None for n in ("grid_blocks", "waves", "tail_frac", "sm_use_frac")}),
        ({"kernel": {"block": None}}, {n: None for n in OCCUPANCY}),
        ({"kernel": {"block": [0, 4]}}, {n: None for n in OCCUPANCY}),
        # counters
        ({"metrics": {f"{SASS}global_st.sum": 0}}, {"store_eff": None, "atomic_frac": 1 / 3}),
        ({"metrics": {f"{SASS}tma_ld.sum": None}}, {"async_frac": 0.0}),
        ({"without": (f"{SASS}tma_ld.sum",)}, {"async_frac": None}),
        ({"metrics": {f"{SASS}ldgsts.sum": 75}}, {"async_frac": 0.5}),
        ({"metrics": {f"{SASS}memory_8b.sum": None}}, {"wide_frac": None}),
        ({"metrics": {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": None}}, {"xu_frac": None, "top_pipe_frac": None}),
        ({"metrics": {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 90.0}}, {"tensor_frac": 0.9, "top_pipe_frac": 0.9}),
        ({"metrics": {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": None}}, {"tensor_frac": None, "tensor_active": None}),
        ({"metrics": {f"{SASS}shared_ld.sum": 0, f"{SASS}shared_st.sum": 0}}, {"shared_loads": 0.0, "shared_eff": None}),
        (
            {"metrics": {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 0, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 0}},
            {"conflict_frac": None},
        ),
        ({"metrics": {"lts__gcomp_input_sectors.sum": 0}}, {"compression_success": None}),
        ({"metrics": {"sm__inst_executed_pipe_tensor_op_hmma.sum": 10}}, {"tensor_inst": 0.0, "tensor_active": 0.0, "wgmma_frac": None}),
        ({"metrics": {"smsp__average_warp_latency_per_inst_issued.ratio": 0.0}}, {"stall_barrier": None, "stall_long_scoreboard": None, "stall_max": None}),
        ({"metrics": {f"{world.STALLED}wait_per_issue_active.ratio": 6.0}}, {"stall_wait": 0.75, "stall_max": 0.75}),
        ({"metrics": {f"{world.STALLED}selected_per_issue_active.ratio": 6.0}}, {}),  # no kind of stall
        # what was measured beside
        ({"warm": None}, {"warm_ratio": None}),
        ({"energy": {"windows": []}}, {"millijoules": None, "power_w": None, "temperature_c": None}),
        ({"compiled": {"tool": "x", "kernels": []}}, {"sass_tensor": 0.0, "sass_local": 0.0, "sass_async": 0.0, "sass_wide_frac": None}),
        ({"timeline": world.TIMELINE | {"operators": []}}, {"hot_operator_share": None, "attention_share": None}),
        ({"timeline": world.TIMELINE | {"operators": [["aten::bmm", 3], ["aten::masked_fill", 1]]}}, {"hot_operator_share": 0.75, "attention_share": 0.0}),
        (
            {"timeline": world.TIMELINE | {"operators": [["aten::baddbmm", 3], ["aten::masked_fill", 1], ["aten::_softmax", 4], ["aten::mm", 8]]}},
            {"hot_operator_share": 0.5, "attention_share": 0.5},
        ),
        ({"timeline": world.TIMELINE | {"collector": "nsys"}}, {"clock_gap": None}),
        # span 8000 against T 2000: 6000 apart, of which 2000 are allowed for
        (
            {"timeline": {"collector": "torch_profiler", "calls": [[[0, 8000, "k"]]], "operators": None}},
            {"span_us": 8.0, "timeline_kernels": 1.0, "gap_frac": 0.0, "hot_share": 1.0, "clock_gap": 0.5, "hot_operator_share": None, "attention_share": None},
        ),
        # two calls, lower medians are of the first: span 100, 1 kernel; one name
        (
            {"timeline": {"collector": "torch_profiler", "calls": [[[0, 100, "k"]], [[0, 100, "k"], [50, 200, "k"]]], "operators": None}},
            {"span_us": 0.1, "timeline_kernels": 1.0, "gap_frac": 0.0, "hot_share": 1.0, "hot_operator_share": None, "attention_share": None},
        ),
    ],
)  # fmt: skip
def test_one_input_replaced(inputs: dict[str, Any], expected: dict[str, float | None]) -> None:
    """Only the signals named change; those of the first set are told only where they change by the second's inputs."""
    found = changed(derived(**inputs))
    first = {n for n in ("floor_us", "headroom") if inputs.get("contract") == "fp32-strict"}
    assert {n: v for n, v in found.items() if n not in first} == pytest.approx(expected, abs=1e-15)


def kernel(**fields: Any) -> Kernel:
    """A launch told apart by its registers."""
    return Kernel("triton", **fields)


def test_the_dominant_launch() -> None:
    """The largest sum of durations by place in the call, the first of equals; none where calls and list do not fit."""
    listed = Launches(True, (kernel(registers=1), kernel(registers=2)))
    slow_second = Timeline("nsys", (((0, 5, "a"), (5, 9, "b")), ((0, 5, "a"), (5, 12, "b"))), None)
    equal = Timeline("nsys", (((0, 5, "a"), (5, 10, "b")),), None)
    third = Timeline("nsys", (((0, 5, "a"), (5, 9, "b")), ((0, 5, "a"),)), None)
    assert dominant(listed, slow_second) is listed.kernels[1]  # 10 ns against 11
    assert dominant(listed, equal) is listed.kernels[0]
    assert dominant(listed, third) is None
    assert dominant(listed, None) is None
    assert dominant(Launches(False, listed.kernels[:1]), None) is None
    assert dominant(Launches(True, listed.kernels[:1]), third) is listed.kernels[0]
    limits = msgspec.convert(world.CALIBRATION, Calibration).limits
    assert limits is not None and occupancy(None, limits) == {}


def test_energy_takes_the_lower_median_of_quotients() -> None:
    """Of two windows the smaller of each."""
    windows = [(2, 10, 5, 30), (1, 6, 2, 31)]  # 5 and 6 mJ a call, 2 and 3 W
    names = ("calls", "millijoules", "milliseconds", "temperature_c")
    energy = msgspec.convert({"windows": [dict(zip(names, w, strict=True)) for w in windows]}, Energy)
    found = derived(energy=msgspec.to_builtins(energy))
    assert (found["millijoules"], found["power_w"], found["temperature_c"]) == (5.0, 2.0, 31.0)


@pytest.mark.parametrize("role", ["timeline", "warm", "compiled", "energy", "kernels"])
@pytest.mark.parametrize("content", [{}, [], None, 3, {"calls": 1}, {"windows": [1]}, {"kernels": {}}])
def test_other_shapes_are_refused_in_words(role: str, content: Any) -> None:
    """A ValueError, which the verifier turns into a finding."""
    with pytest.raises(ValueError):
        msgspec.convert(content, SHAPES[role])
