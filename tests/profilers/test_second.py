"""The second set of signals: values worked by hand, and every counter missing in turn."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.events.model import Chip
from gpusolver.profilers import counted as c
from gpusolver.profilers.artifacts import Calibration, Counters, DeviceState, decode
from gpusolver.profilers.counted import counter_signals
from gpusolver.profilers.inputs import evidence, is_metric
from gpusolver.profilers.signals import signals
from gpusolver.profilers.timeline import busy, span

from .examples import CHIP, PROBLEM, launch, launches, samples

LIMITS = {
    "sms": 132, "warps_per_sm": 64, "blocks_per_sm": 32, "registers_per_sm": 65536, "shared_per_sm": 233472,
    "shared_reserved": 1024, "sm_clock_mhz": 2000,
}  # fmt: skip
# 4000 GB/s; in the L2 8000 GB/s; fp32 40, TF32 320, bf16 600 TFLOP/s.
CEILINGS: dict[str, Any] = {
    "copy": {"bytes": 4_000_000, "ns": [1000]},
    "l2": {"bytes": 8_000_000, "ns": [1000, 1000, 5000]},
    "gemm_fp32": {"flop": 40_000_000_000, "ns": [1_000_000]},
    "gemm_tf32": {"flop": 320_000_000_000, "ns": [1_000_000]},
    "gemm_bf16": {"flop": 600_000_000_000, "ns": [1_000_000]},
    "limits": LIMITS,
}
TIME = 20_000
METRICS: dict[str, float | None] = {
    c.L2_BYTES: 16_000_000, c.GLOBAL_LD: 300, c.GLOBAL_ST: 100, c.SHARED_LD: 50, c.SHARED_ST: 50, c.STORE_EFFICIENCY: 25.0,
    c.SHARED_EFFICIENCY: 50.0, c.LDGSTS: 60, c.TMA: 40, **dict(zip(c.WIDTHS, (30, 10, 20, 20, 20), strict=True)),
    c.LOCAL_BYTES: 100, c.GLOBAL_BYTES: 300, **dict(zip(c.ATOMS, (60, 40), strict=True)),
    **dict(zip(c.CONFLICTS, (20, 10), strict=True)), **dict(zip(c.WAVEFRONTS, (50, 50), strict=True)),
    **dict(zip(c.PIPES.values(), (40.0, 10.0, 20.0, 30.0, 5.0), strict=True)),
    **dict(zip(c.FP32, (100_000_000, 60_000_000, 40_000_000), strict=True)), **dict(zip(c.FP64, (10_000_000, 20_000_000, 20_000_000), strict=True)),
    **dict(zip(c.APERTURES, (5, 5), strict=True)), c.TEX_SECTORS: 100, c.COMPRESSION: 20.0, c.COMPRESSED: 7, c.WGMMA: 30,
    c.LANES["lane_frac"]: 24.0, c.LANES["lane_frac_pred"]: 16.0, c.PLAIN["issue_active"]: 0.3, c.PLAIN["eligible_warps"]: 0.7,
    c.HITS["l1_hit"]: 40.0, c.HITS["l2_hit"]: 106.25, "sm__cycles_active.avg": 75, "sm__cycles_active.max": 100,
    "lts__cycles_active.avg": 90, "lts__cycles_active.max": 100, c.LATENCY: 20.0, c.stall_metric("barrier"): 5.0,
    c.stall_metric("long_scoreboard"): 12.0,
}  # fmt: skip
EXPECTED = {
    "l2_frac": 16_000_000 / TIME / 8000,  # 800 of 8000 GB/s
    "store_eff": 0.25, "local_frac": 0.25, "sysmem_frac": 0.1, "compression_success": 0.2, "conflict_frac": 0.3, "shared_eff": 0.5,
    "wide_frac": 0.3, "async_frac": 0.25, "atomic_frac": 0.2, "nonfused_frac": 0.5, "fp64_share": 0.2,
    "fp32_exec_frac": 300_000_000 / TIME / 40_000,  # (2 x 100 + 60 + 40) million operations in 20 us are 15 TFLOP/s of 40
    "fma_frac": 0.4, "fp64_frac": 0.1, "alu_frac": 0.2, "lsu_frac": 0.3, "xu_frac": 0.05, "top_pipe_frac": 0.6,
    "lane_frac": 0.75, "lane_frac_pred": 0.5, "issue_active": 0.3, "eligible_warps": 0.7, "shared_loads": 50.0,
    "l1_hit": 0.4, "l2_hit": 1.0, "sm_imbalance": 0.25, "l2_imbalance": pytest.approx(0.1), "wgmma_frac": 0.5,
    "stall_barrier": 0.25, "stall_long_scoreboard": 0.6, "stall_max": 0.6,
}  # fmt: skip


def counted(metrics: dict[str, float | None]) -> dict[str, float]:
    found = counter_signals(metrics, TIME, 8000.0, 40.0, 60, 0.6)
    return {name: value for name, value in found.items() if value is not None}


def test_counter_signals_by_hand() -> None:
    assert counted(METRICS) == EXPECTED


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("how", ["null", "not listed"])
def test_a_missing_counter_leaves_its_signals_absent(metric: str, how: str) -> None:
    """Absent, not 0 and not another value; a signal that does not rest on the counter stays as it is."""
    lacking = {**METRICS, metric: None} if how == "null" else {k: v for k, v in METRICS.items() if k != metric}
    found = counted(lacking)
    for name, value in EXPECTED.items():
        if metric not in evidence(name):
            assert found[name] == value
        elif name == "async_frac" and how == "null" and metric in (c.LDGSTS, c.TMA):
            assert found[name] == pytest.approx(
                {c.LDGSTS: 40 / 340, c.TMA: 60 / 360}[metric]
            )  # the chip has no such instruction
        elif name == "stall_max" and metric == c.stall_metric("long_scoreboard"):
            assert found[name] == 0.25  # the largest of those that are known
        elif name == "stall_max" and metric == c.stall_metric("barrier"):
            assert found[name] == 0.6
        else:
            assert name not in found


def test_ratios_of_nothing_to_nothing_are_absent() -> None:
    zeros: dict[str, float | None] = dict.fromkeys(METRICS, 0.0)
    found = counted(zeros)
    for name in ("store_eff", "shared_eff", "conflict_frac", "wide_frac", "async_frac", "atomic_frac", "nonfused_frac", "fp64_share",
                 "sm_imbalance", "stall_max", "sysmem_frac", "compression_success", "local_frac"):  # fmt: skip
        assert name not in found
    assert found["wgmma_frac"] == 0 and found["issue_active"] == 0


# --- through the whole ------------------------------------------------------------------------------------------------


def seen(
    calibration: dict[str, Any], contract: str = "tf32-allowed", chip: Chip = CHIP, **extras: Any
) -> dict[str, float]:
    taken = samples([(20_000, 20_000)] * 9)
    listed = launches(launch(registers=64, static_shared=0))
    read = Counters(collector="c", passes=1, chip="GH100", cache="cold", metrics=METRICS)
    raw = {role: msgspec.json.encode(content) for role, content in extras.items()}
    ceilings = decode(Calibration, msgspec.json.encode(calibration))
    return signals(PROBLEM, contract, chip, 4000.0, taken, listed, read, ceilings, raw)


def test_without_limits_there_is_no_second_set() -> None:
    """A calibration of an older ledger has rates too, but no limits: its signals stay what they were."""
    older = {key: value for key, value in CEILINGS.items() if key != "limits"}
    taken = samples([(20_000, 20_000)] * 9)
    read = Counters(collector="c", passes=1, chip="GH100", cache="cold", metrics=METRICS)
    first = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, taken, launches(launch(registers=64)), read)
    assert seen(older) == first
    assert set(first) < set(seen(CEILINGS))


@pytest.mark.parametrize(
    ("contract", "rate"), [("fp32-strict", 40.0), ("tf32-allowed", 320.0), ("bf16-allowed", 600.0)]
)
def test_the_ceiling_is_the_fastest_measured_path_of_the_contract(contract: str, rate: float) -> None:
    """0.8 GFLOP in 20 us are 40 TFLOP/s; 4 MB at 4000 GB/s take 1 us, 0.8 GFLOP at 40 TFLOP/s 20 us, at 320 2.5 us."""
    found = seen(CEILINGS, contract)
    assert found["rate_frac"] == 40.0 / rate
    assert found["ceiling_us"] == pytest.approx(max(1.0, 800_000_000 / (rate * 1000) / 1000))
    assert found["ceiling_headroom"] == pytest.approx(20.0 / found["ceiling_us"])


def test_split_products_run_at_a_third_of_the_measured_tf32_rate() -> None:
    """320 / 3 TFLOP/s where the chip states the path: 0.8 GFLOP take 7.5 us. Without TF32's rate fp32's 40 is the ceiling."""
    splits = replace(CHIP, peaks_tflops=CHIP.peaks_tflops | {"tf32x3": CHIP.peaks_tflops["tf32"] / 3})
    found = seen(CEILINGS, "fp32-strict", splits)
    assert found["ceiling_us"] == pytest.approx(7.5) and found["rate_frac"] == pytest.approx(0.375)
    assert found["floor_us"] == pytest.approx(max(1.0, 800 / (CHIP.peaks_tflops["tf32"] / 3)))
    assert seen({k: v for k, v in CEILINGS.items() if k != "gemm_tf32"}, "fp32-strict", splits)["rate_frac"] == 1.0


def test_spread_is_the_middle_half_over_the_median() -> None:
    """B samples 100, 100, 104, 104, 110, 110, 120, 120, 130, 130: indices 2 and 6 (9 / 4, 27 / 4) are 104 and 120, the lower median 110."""
    taken = samples([(1, 130), (1, 104), (1, 120), (1, 100), (1, 110)])
    ceilings = decode(Calibration, msgspec.json.encode(CEILINGS))
    found = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, taken, None, None, ceilings)
    assert found["spread"] == 16 / 110


@pytest.mark.parametrize("bit", range(10))
def test_bits_that_say_the_clock_was_held_down(bit: int) -> None:
    """NVML: 0 idle, 1 application clocks, 2 power cap, 3 hardware slowdown, 4 sync boost, 5 and 6 heat, 7 power brake, 8 display clocks."""
    held = DeviceState(throttle_bits=float(1 << bit))
    taken = replace(samples([(10, 10)] * 3), before=DeviceState(throttle_bits=0.0), after=held)
    ceilings = decode(Calibration, msgspec.json.encode(CEILINGS))
    found = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, taken, None, None, ceilings)
    assert found["throttled"] == (bit in (2, 3, 5, 6, 7))


@pytest.mark.parametrize(
    ("throttled_ns", "wall_s", "frac"),
    [(3e8, 1.5, 0.2), (0.0, 1.5, 0.0), (None, 1.5, None), (3e8, None, None), (3e8, 0.0, None)],
)
def test_share_of_the_time_that_clocks_were_held_down(throttled_ns: Any, wall_s: Any, frac: float | None) -> None:
    taken = replace(samples([(10, 10)] * 3), throttled_ns=throttled_ns, wall_s=wall_s)
    ceilings = decode(Calibration, msgspec.json.encode(CEILINGS))
    found = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, taken, None, None, ceilings)
    assert found.get("throttled_frac") == pytest.approx(frac)


@pytest.mark.parametrize(
    ("before", "after", "throttled", "clock"),
    [
        ({"throttle_bits": 0.0, "sm_clock_mhz": 1980.0}, {"throttle_bits": 0.0, "sm_clock_mhz": 1500.0}, 0, 0.75),
        ({"throttle_bits": 1.0, "sm_clock_mhz": 2000.0}, {"throttle_bits": 2.0, "sm_clock_mhz": 2000.0}, 0, 1.0),
        ({"throttle_bits": 0.0}, {"throttle_bits": 4.0}, 1, None),
        ({"throttle_bits": 64.0}, {"throttle_bits": 0.0}, 1, None),
        ({"throttle_bits": 4.0}, {}, None, None),
        (None, {"throttle_bits": 4.0, "sm_clock_mhz": 2000.0}, None, None),
    ],
)
def test_clock_and_throttle_need_both_ends(before: Any, after: Any, throttled: int | None, clock: float | None) -> None:
    """An idle GPU (bit 1) and application clocks (bit 2) are no throttling; a power cap (4) and a thermal brake (64) are."""
    state = [None if part is None else DeviceState(**part) for part in (before, after)]
    taken = replace(samples([(10, 10)] * 3), before=state[0], after=state[1])
    ceilings = decode(Calibration, msgspec.json.encode(CEILINGS))
    found = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, taken, None, None, ceilings)
    assert (found.get("throttled"), found.get("sm_clock_frac")) == (throttled, clock)


def test_occupancy_gap_is_theory_less_what_was_seen_for_one_kernel_only() -> None:
    """64 registers and 4 warps a block: 8 blocks by registers, 32 of 64 warps: 0.5 in theory."""
    metrics: dict[str, float | None] = {"sm__warps_active.avg.pct_of_peak_sustained_active": 30.0}
    read = Counters(collector="c", passes=1, chip="GH100", cache="cold", metrics=metrics)
    ceilings = decode(Calibration, msgspec.json.encode(CEILINGS))
    one = launch(registers=64, static_shared=0)
    for listed, gap in ((launches(one), 0.2), (launches(one, one), None)):
        found = signals(PROBLEM, "tf32-allowed", CHIP, 4000.0, samples([(10, 10)] * 3), listed, read, ceilings)
        assert found.get("occupancy_gap") == (None if gap is None else pytest.approx(gap))


# --- timeline, warm, energy, disassembly ------------------------------------------------------------------------------

CALLS = [
    [[0, 4000, "a"], [3000, 9000, "b"], [11_000, 21_000, "a"]],  # span 21000, busy 19000
    [[100, 10_100, "a"], [15_100, 20_100, "b"]],  # span 20000, busy 15000
]
OPERATORS = [["aten::bmm", 600], ["aten::_softmax", 200], ["aten::copy_", 200]]


def test_timeline_by_hand() -> None:
    found = seen(CEILINGS, timeline={"collector": "torch_profiler", "calls": CALLS, "operators": OPERATORS})
    assert found["span_us"] == 20.0  # the lower of two
    assert found["timeline_kernels"] == 2
    assert found["gap_frac"] == 2000 / 21_000  # 0.095 and 0.25, the lower
    assert found["hot_share"] == 24_000 / 35_000
    assert found["clock_gap"] == (0 - 2000) / 20_000  # events say 20000 ns too
    assert found["hot_operator_share"] == 0.6 and found["attention_share"] == 0.8


STARTS_AND_LENGTHS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=8)


@given(STARTS_AND_LENGTHS)
def test_busy_time_is_each_nanosecond_in_which_a_kernel_runs(found: list[tuple[int, int]]) -> None:
    """Counted one by one, overlaps once."""
    call = tuple((start, start + length, "k") for start, length in found)
    ticks = {tick for start, end, _ in call for tick in range(start, end)}
    assert busy(call) == len(ticks)
    assert span(call) == max(ticks) - min(ticks) + 1


def test_attention_needs_a_product_and_a_softmax() -> None:
    def share(*operators: list[Any]) -> float | None:
        made = {"collector": "torch_profiler", "calls": CALLS, "operators": list(operators) or None}
        return seen(CEILINGS, timeline=made).get("attention_share")

    assert share(["aten::bmm", 600], ["aten::copy_", 200]) == 0
    assert share(["aten::_softmax", 600], ["aten::copy_", 200]) == 0
    assert share() is None


@pytest.mark.parametrize(("end", "gap"), [(40_000, 18_000 / 40_000), (16_000, 2000 / 16_000), (19_000, -1000 / 19_000)])
def test_the_two_clocks_may_differ_by_two_microseconds(end: int, gap: float) -> None:
    """Events say 20 us; beyond 2 us the difference counts, as a share of the span."""
    found = seen(CEILINGS, timeline={"collector": "torch_profiler", "calls": [[[0, end, "a"]]]})
    assert found["clock_gap"] == gap


def test_an_export_of_nsys_is_no_second_clock() -> None:
    assert "clock_gap" not in seen(CEILINGS, timeline={"collector": "nsys", "calls": CALLS})


def test_warm_energy_and_disassembly_by_hand() -> None:
    windows = [
        {"calls": 1000, "millijoules": mj, "milliseconds": 2000, "temperature_c": t}
        for mj, t in ((900, 50), (1000, 52), (1200, 51))
    ]
    mix = {
        "HMMA.16816.F32": 8,
        "HFMA2.MMA": 5,
        "LDG.E.128": 6,
        "LDG.E": 1,
        "STG.E.128.STRONG": 1,
        "LDL": 2,
        "STL.64": 1,
        "LDGSTS.E.128": 3,
        "UTMALDG.2D": 4,
        "UBLKCP.S.G": 5,
        "UTMASTG.2D": 9,
    }
    found = seen(
        CEILINGS,
        warm={"clock": "cuda_event", "cache": "warm", "unit": "ns", "blocks": [[16_000] * 4] * 3},
        energy={"windows": windows},
        compiled={"tool": "t", "kernels": [{"code": "0" * 64, "mix": mix}]},
    )
    assert found["warm_ratio"] == 1.25
    assert (found["millijoules"], found["power_w"], found["temperature_c"]) == (1.0, 0.5, 52)
    # HFMA2.MMA is a load-immediate, no tensor instruction; asynchronous copies are no plain loads.
    assert (found["sass_tensor"], found["sass_local"], found["sass_async"]) == (8, 3, 12)
    assert found["sass_wide_frac"] == 7 / 8


def test_roles_that_no_signal_reads_are_passed_over() -> None:
    kernels = {
        "collector": "cupti_kernel_replay",
        "passes": 1,
        "chip": "GH100",
        "cache": "cold",
        "kernels": [{"a.sum": 1}],
    }
    assert seen(CEILINGS, kernels=kernels, energy={"windows": []}) == seen(CEILINGS)


def test_inputs_of_the_second_set_name_real_metrics() -> None:
    used = {name for signal in EXPECTED for name in evidence(signal) if is_metric(name)}
    assert set(METRICS) <= used | {c.stall_metric("barrier")}
