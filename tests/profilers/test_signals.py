"""Signals against a table worked by hand, and the difference between zero and missing."""

from typing import Any

import msgspec
import pytest

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Chip
from gpusolver.profilers.artifacts import Counters
from gpusolver.profilers.chips import chip_for
from gpusolver.profilers.signals import TENSOR_METRICS, paths, peak, signals, tensor_metric, tier

from .examples import CHIP, PROBLEM, UNKNOWN, launch, launches, samples

# B times 20000 (thrice) and 40000 ns: the lower median of (20000, 20000, 20000, 20000, 20000, 20000, 40000, 40000) is 20000.
TAKEN = samples([(50_000, 20_000), (50_000, 20_000), (50_000, 40_000), (50_000, 20_000)])
COPY = 4000.0
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
HFMA2 = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
ANY = "sm__inst_executed_pipe_tensor.sum"
METRICS: dict[str, int | float | None] = {
    "dram__bytes_read.sum": 6_000_000,
    "dram__bytes_write.sum": 2_000_000,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 50.0,
    "smsp__sass_inst_executed_op_global_ld.sum": 10,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 25.0,
    TENSOR: 75.0,
    HMMA: 132096,
    HFMA2: 1024,
    ANY: 999,
}
KERNELS = launches(launch(registers=32, local_bytes=0), launch(registers=200), launch(local_bytes=64))


def counters(changes: dict[str, int | float | None] | None = None, without: tuple[str, ...] = ()) -> Counters:
    metrics = {name: value for name, value in (METRICS | (changes or {})).items() if name not in without}
    return Counters(collector="cupti", passes=3, chip="GH100", cache="cold", metrics=metrics)


def found(**other: Any) -> dict[str, float]:
    fields: dict[str, Any] = {
        "problem": PROBLEM,
        "contract": "fp32-strict",
        "chip": CHIP,
        "copy_gbps": COPY,
        "samples": TAKEN,
        "launches": KERNELS,
        "counters": counters(),
    }
    return signals(**(fields | other))


def test_every_signal_by_hand() -> None:
    assert found() == {
        "time_us": 20.0,
        "floor_us": 16.0,  # 8e8 FLOP / 5e4 FLOP per ns = 16000 ns; 4e6 B / 4000 B per ns = 1000 ns
        "headroom": 1.25,  # 20 / 16
        "intensity": 200.0,  # 8e8 / 4e6
        "useful_bw_frac": 0.05,  # 4e6 B / 20000 ns = 200 of 4000 GB/s
        "flop_frac": 0.8,  # 8e8 / 20000 ns = 40 of 50 TFLOP/s
        "weight": 1.0,
        "dtype_bits": 32.0,
        "kernel_count": 3.0,
        "mean_kernel_us": 20.0 / 3,
        "registers": 200.0,
        "local_bytes": 64.0,
        "dram_bytes": 8_000_000.0,
        "bw_frac": 0.1,  # 8e6 B / 20000 ns = 400 of 4000 GB/s
        "traffic_excess": 2.0,
        "load_eff": 0.5,
        "occupancy": 0.25,
        "tensor_frac": 0.75,
        "tensor_inst": 131072.0,  # 512^3 / (16 * 8 * 8): what a 512^3 matmul takes in m16n8k8
        "tensor_active": 1.0,
    }
    assert all(type(value) is float for value in found().values())


def test_contract_sets_the_floor() -> None:
    strict, tf32 = found(), found(contract="tf32-allowed")
    assert (strict["floor_us"], tf32["floor_us"]) == (16.0, 2.0)
    assert strict["flop_frac"] == tf32["flop_frac"]  # always against fp32


def test_timing_alone() -> None:
    alone = found(launches=None, counters=None)
    assert set(alone) == {
        "time_us", "floor_us", "headroom", "intensity", "useful_bw_frac", "flop_frac", "weight", "dtype_bits",
    }  # fmt: skip


def test_an_incomplete_list_counts_nothing_but_keeps_what_it_saw() -> None:
    partial = found(launches=launches(launch(registers=40), complete=False), counters=None)
    assert "kernel_count" not in partial
    assert "mean_kernel_us" not in partial
    assert partial["registers"] == 40.0
    assert "local_bytes" not in partial


def test_unknown_chip_lacks_what_needs_a_peak() -> None:
    lacking = set(found()) - set(found(chip=UNKNOWN))
    assert lacking == {"floor_us", "headroom", "flop_frac"}


def test_other_dtype_has_no_bits() -> None:
    assert "dtype_bits" not in found(problem=msgspec.structs.replace(PROBLEM, dtype="int8"))


def test_a_zero_divisor_leaves_the_quotient_absent() -> None:
    free = found(problem=msgspec.structs.replace(PROBLEM, min_bytes=0, flops=0), launches=launches())
    assert free["floor_us"] == free["flop_frac"] == free["kernel_count"] == 0.0
    assert free.keys().isdisjoint({"headroom", "intensity", "traffic_excess", "mean_kernel_us"})


DEPENDENTS = {
    "dram__bytes_read.sum": {"dram_bytes", "bw_frac", "traffic_excess"},
    "dram__bytes_write.sum": {"dram_bytes", "bw_frac", "traffic_excess"},
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": {"load_eff"},
    "smsp__sass_inst_executed_op_global_ld.sum": {"load_eff"},
    "sm__warps_active.avg.pct_of_peak_sustained_active": {"occupancy"},
    TENSOR: {"tensor_frac", "tensor_active"},
    HMMA: {"tensor_inst", "tensor_active"},
}


@pytest.mark.parametrize("name", DEPENDENTS)
def test_a_missing_metric_is_absent_and_never_zero(name: str) -> None:
    full = found()
    expected = {signal: value for signal, value in full.items() if signal not in DEPENDENTS[name]}
    assert found(counters=counters({name: None})) == expected
    assert found(counters=counters(without=(name,))) == expected


def test_zero_is_a_value() -> None:
    zero = found(counters=counters({"dram__bytes_read.sum": 0, "dram__bytes_write.sum": 0, TENSOR: 0}))
    assert (zero["dram_bytes"], zero["bw_frac"], zero["traffic_excess"], zero["tensor_frac"]) == (0.0, 0.0, 0.0, 0.0)


def test_load_efficiency_is_unknown_where_no_load_was_seen() -> None:
    blind = counters(
        {
            "smsp__sass_inst_executed_op_global_ld.sum": 0,
            "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 0.0,
        }
    )
    assert "load_eff" not in found(counters=blind)


def test_first_tensor_metric_that_was_collected() -> None:
    assert tensor_metric(dict.fromkeys(TENSOR_METRICS, 1.0)) == (
        "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_active"
    )
    assert tensor_metric({TENSOR_METRICS[0]: None, TENSOR_METRICS[1]: 2.0, TENSOR: 9.0}) == (
        "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active"
    )
    assert tensor_metric({TENSOR_METRICS[0]: 0.0, TENSOR: 9.0}) == TENSOR_METRICS[0]  # zero was collected
    assert tensor_metric({TENSOR: None}) is None


@pytest.mark.parametrize(
    ("changes", "inst", "active"),
    [
        (
            {HMMA: 1024, HFMA2: 1024},
            0.0,
            0.0,
        ),  # load-immediates alone: no tensor core is in use, busy though the pipe reads
        ({TENSOR: 0.99}, 131072.0, 0.0),
        ({TENSOR: 1.0}, 131072.0, 1.0),
        ({HMMA: None, HFMA2: None}, 999.0, 1.0),  # a chip without the split
        ({HFMA2: None}, 999.0, 1.0),
        ({HMMA: None, HFMA2: None, ANY: 0}, 0.0, 0.0),
    ],
)
def test_tensor_cores_in_use(changes: dict[str, int | float | None], inst: float, active: float) -> None:
    seen = found(counters=counters(changes))
    assert (seen["tensor_inst"], seen["tensor_active"]) == (inst, active)


def test_a_split_that_nobody_asked_for_is_not_a_chip_without_one() -> None:
    # On a chip with the split the whole count takes in load-immediates: better no signal than that one.
    assert "tensor_inst" not in found(counters=counters(without=(HMMA, HFMA2)))


@pytest.mark.parametrize(
    ("contract", "h200", "t4"),
    [("fp32-strict", 164.9, 8.1), ("tf32-allowed", 494.7, 8.1), ("bf16-allowed", 989.4, 8.1)],
)
def test_peak_by_contract(contract: str, h200: float, t4: float) -> None:
    """494.7 TFLOP/s of TF32 are 164.9 of products that take three each; a T4 has no TF32."""
    assert peak(chip_for("NVIDIA H200", "9.0"), contract) == h200
    assert peak(chip_for("Tesla T4", "7.5"), contract) == t4  # its fp16 path is in no contract
    assert peak(Chip(name="x", compute_capability="0.0", peaks_tflops={}, dram_gbps=0.0), contract) is None


def test_a_chip_of_an_older_ledger_has_no_split_products() -> None:
    """Its peaks were recorded without that path: `fp32-strict` is fp32 alone there."""
    older = Chip(name="H200", compute_capability="9.0", peaks_tflops={"fp32": 66.9, "tf32": 494.7}, dram_gbps=4800.0)
    assert peak(older, "fp32-strict") == 66.9


def test_unknown_contract_is_refused() -> None:
    with pytest.raises(BadInput, match="fp32-strict, tf32-allowed, bf16-allowed, found 'fp16'"):
        paths("fp16")


def test_tier() -> None:
    assert tier(KERNELS, counters()) == "full"
    assert tier(KERNELS, None) == "compiled"
    assert tier(launches(launch(), complete=False), None) == "timing"
    assert tier(None, None) == "timing"


def test_a_record_of_refused_counters_is_no_counters() -> None:
    refused = msgspec.structs.replace(counters(), collector="none", metrics={})
    assert tier(KERNELS, refused) == "compiled"
    assert tier(launches(launch(), complete=False), refused) == "timing"
