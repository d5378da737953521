"""Signals: what the samples, launches and counters of one kernel say about it. Never guesses: what lacks an input is absent, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from ..events.errors import BadInput
from ..events.model import Chip, ProblemDeclared, Tier
from .artifacts import Calibration, Counters, Launches, Samples
from .intervals import b_times, lower_median
from .second import second

Number = int | float | None

SPLIT = "tf32x3"
PATHS = {"fp32-strict": ("fp32", SPLIT), "tf32-allowed": ("fp32", "tf32"), "bf16-allowed": ("fp32", "tf32", "bf16")}
"""A contract is decided by measured error, so `fp32-strict` has the path of float32 products that are split into TF32 ones: on chips that are
stated to have it, which those of older ledgers are not."""
DTYPE_BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}

DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
LOAD_EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
GLOBAL_LOADS = "smsp__sass_inst_executed_op_global_ld.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
# On GA100 and GH100 the hmma count takes in HFMA2.MMA, which compilers emit as a load-immediate in plain fp32 code.
HMMA, HFMA2 = "sm__inst_executed_pipe_tensor_op_hmma.sum", "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
TENSOR_ANY = "sm__inst_executed_pipe_tensor.sum"
TENSOR_METRICS = tuple(
    f"sm__{pipe}.avg.pct_of_peak_sustained_active"
    for pipe in (
        "pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
        "pipe_tensor_cycles_active_v2",
        "pipe_tensor_subpipe_hmma_cycles_active",
        "pipe_tensor_cycles_active",
    )
)


def paths(contract: str) -> tuple[str, ...]:
    """The arithmetic paths that a precision contract allows. BadInput for a contract that does not exist."""
    if contract not in PATHS:
        raise BadInput(f"unknown precision contract: expected one of {', '.join(PATHS)}, found {contract!r}")
    return PATHS[contract]


def peak(chip: Chip, contract: str) -> float | None:
    """Largest data-sheet peak in TFLOP/s of the allowed paths that the chip has; None where none is known."""
    return max((chip.peaks_tflops[path] for path in paths(contract) if path in chip.peaks_tflops), default=None)


def tier(launches: Launches | None, counters: Counters | None) -> Tier:
    """How much was collected: `full` with counters, `compiled` with a complete launch list, else `timing`.

    Counters of the collector `none` record why none could be read: they count as absent.
    """
    if counters is not None and counters.collector != "none":
        return "full"
    return "compiled" if launches is not None and launches.complete else "timing"


def signals(
    problem: ProblemDeclared,
    contract: str,
    chip: Chip,
    copy_gbps: float,
    samples: Samples,
    launches: Launches | None,
    counters: Counters | None,
    calibration: Calibration | None = None,
    extras: Mapping[str, bytes] | None = None,
) -> dict[str, float]:
    """Every signal of replay/FORMAT.md section 6.3 that can be computed, in its order; units stand in the names.

    `copy_gbps` is the measured copy ceiling; `calibration` with limits gives the second set, to which `extras` (artifacts by
    role) belong. A chip without peaks (unknown to the table) lacks the signals that need one, and a
    quotient with a zero divisor is absent.
    """
    time = lower_median(b_times(samples))
    known = _timing(problem, contract, chip, copy_gbps, time) | _launches(launches, time)
    known |= _counters(problem, copy_gbps, time, counters.metrics if counters is not None else {})
    if calibration is not None:
        allowed = tuple(path for path in paths(contract) if path != SPLIT or path in chip.peaks_tflops)
        known |= second(problem, allowed, copy_gbps, calibration, samples, launches, counters, extras or {}, known)
    return {name: float(value) for name, value in known.items() if value is not None}


def tensor_metric(metrics: dict[str, Number]) -> str | None:
    """The first tensor-pipe metric that was collected: the earlier ones leave out what is not a tensor instruction."""
    return next((name for name in TENSOR_METRICS if metrics.get(name) is not None), None)


def _timing(problem: ProblemDeclared, contract: str, chip: Chip, copy_gbps: float, time: int) -> dict[str, Number]:
    time_us = time / 1000
    floor_us = _floor_us(problem, peak(chip, contract), copy_gbps)
    fp32 = chip.peaks_tflops.get("fp32")
    return {
        "time_us": time_us,
        "floor_us": floor_us,
        "headroom": _over(time_us, floor_us),
        "intensity": _over(problem.flops, problem.min_bytes),
        "useful_bw_frac": _over(problem.min_bytes / time, copy_gbps),
        "flop_frac": None if fp32 is None else _over(problem.flops / time, fp32 * 1000),
        "weight": problem.weight,
        "dtype_bits": DTYPE_BITS.get(problem.dtype),
    }


def _floor_us(problem: ProblemDeclared, top: float | None, copy_gbps: float) -> float | None:
    if not top or not copy_gbps:
        return None
    return max(problem.min_bytes / copy_gbps, problem.flops / (top * 1000)) / 1000


def _launches(launches: Launches | None, time: int) -> dict[str, Number]:
    if launches is None:
        return {}
    count = len(launches.kernels) if launches.complete else None
    return {
        "kernel_count": count,
        "mean_kernel_us": _over(time / 1000, count),
        "registers": max((k.registers for k in launches.kernels if k.registers is not None), default=None),
        "local_bytes": max((k.local_bytes for k in launches.kernels if k.local_bytes is not None), default=None),
    }


def _counters(problem: ProblemDeclared, copy_gbps: float, time: int, metrics: dict[str, Number]) -> dict[str, Number]:
    read, written = metrics.get(DRAM_READ), metrics.get(DRAM_WRITE)
    dram = None if read is None or written is None else read + written
    # Loads by cp.async or TMA are not seen here: without one counted load the efficiency is unknown, though it reads 0.
    loads_seen = (metrics.get(GLOBAL_LOADS) or 0) > 0
    busy = tensor_metric(metrics)
    fraction = _over(metrics[busy], 100) if busy is not None else None
    count = _tensor_inst(metrics)
    return {
        "dram_bytes": dram,
        "bw_frac": _over(_over(dram, time), copy_gbps),
        "traffic_excess": _over(dram, problem.min_bytes),
        "load_eff": _over(metrics.get(LOAD_EFFICIENCY), 100) if loads_seen else None,
        "occupancy": _over(metrics.get(OCCUPANCY), 100),
        "tensor_frac": fraction,
        "tensor_inst": count,
        "tensor_active": None if count is None or fraction is None else int(count > 0 and fraction >= 0.01),
    }


def _tensor_inst(metrics: dict[str, Number]) -> Number:
    hmma, hfma2 = metrics.get(HMMA), metrics.get(HFMA2)
    # Null says that the chip has no such split. Not listed says only that nobody asked, and the whole count would mislead.
    if HFMA2 in metrics and hfma2 is None:
        return metrics.get(TENSOR_ANY)
    return None if hmma is None or hfma2 is None else hmma - hfma2


def _over(top: Number, bottom: Number) -> float | None:
    return None if top is None or not bottom else top / bottom
