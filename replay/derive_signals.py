"""Signals, tier, inertness and context of FORMAT.md 6.3 to 6.5, from raw artifacts. Never fills in a missing value."""

from __future__ import annotations

from ..events.model import Chip, Context, ProblemDeclared, Tier
from .artifacts import Counters, Launches, Samples
from .calibration import Calibration
from .derive_second import second
from .extras import NONE, Extras
from .partial import Metrics, Number
from .partial import div as _div
from .shelf import Shelf
from .statistic import lower_median, paths, peak

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}
TENSOR_ACTIVE = (
    "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
)
HMMA = "sm__inst_executed_pipe_tensor_op_hmma"


def copy_gbps(calibration: Calibration) -> float:
    """Measured copy ceiling: bytes per ns, which is GB/s."""
    return calibration.copy.bytes / lower_median(calibration.copy.ns)


def tier(counters: Counters | None, launches: Launches) -> Tier:
    """How much was measured."""
    if counters is not None and counters.read():
        return "full"
    return "compiled" if launches.complete else "timing"


def signals(
    problem: ProblemDeclared,
    contract: str,
    chip: Chip,
    ceiling: float,
    samples: Samples,
    launches: Launches,
    counters: Counters | None,
    calibration: Calibration | None = None,
    extras: Extras = NONE,
) -> dict[str, float]:
    """Every signal that its inputs allow; `ceiling` is the device's copy rate in GB/s.

    `calibration`: where it states the device's limits, the second set is among them.
    """
    t = lower_median(samples.right()) if samples.blocks else None
    found = _timing(problem, contract, chip, ceiling, t) | _compiled(launches, t)
    if counters is not None:
        found |= _counted(problem, ceiling, counters.metrics, t)
    first = _present(found)
    if calibration is None:
        return first
    return first | _present(
        second(problem, paths(chip, contract), calibration, ceiling, samples, launches, counters, extras, first)
    )


def _present(found: dict[str, Number]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items() if value is not None}


def _timing(problem: ProblemDeclared, contract: str, chip: Chip, ceiling: float, t: Number) -> dict[str, Number]:
    top = peak(chip, contract)
    by_bytes, by_flops = _div(problem.min_bytes, ceiling), _div(problem.flops, None if top is None else top * 1000)
    floor = None if by_bytes is None or by_flops is None else max(by_bytes, by_flops) / 1000
    fp32 = chip.peaks_tflops.get("fp32")
    time_us = _div(t, 1000)
    return {
        "time_us": time_us,
        "floor_us": floor,
        "headroom": _div(time_us, floor),
        "intensity": _div(problem.flops, problem.min_bytes),
        "useful_bw_frac": _div(_div(problem.min_bytes, t), ceiling),
        "flop_frac": _div(_div(problem.flops, t), None if fp32 is None else fp32 * 1000),
        "weight": problem.weight,
        "dtype_bits": BITS.get(problem.dtype),
    }


def _compiled(launches: Launches, t: Number) -> dict[str, Number]:
    count = len(launches.kernels) if launches.complete else None
    return {
        "kernel_count": count,
        "mean_kernel_us": _div(_div(t, 1000), count),
        "registers": max((k.registers for k in launches.kernels if k.registers is not None), default=None),
        "local_bytes": max((k.local_bytes for k in launches.kernels if k.local_bytes is not None), default=None),
    }


def _counted(problem: ProblemDeclared, ceiling: float, m: Metrics, t: Number) -> dict[str, Number]:
    read, written = m.get("dram__bytes_read.sum"), m.get("dram__bytes_write.sum")
    dram = None if read is None or written is None else read + written
    loads = m.get("smsp__sass_inst_executed_op_global_ld.sum")
    efficiency = m.get("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct")
    collected = (m[name] for name in TENSOR_ACTIVE if m.get(name) is not None)
    frac, inst = _div(next(collected, None), 100), _tensor_inst(m)
    return {
        "dram_bytes": dram,
        "bw_frac": _div(_div(dram, t), ceiling),
        "traffic_excess": _div(dram, problem.min_bytes),
        "load_eff": _div(efficiency, 100) if loads is not None and loads > 0 else None,
        "occupancy": _div(m.get("sm__warps_active.avg.pct_of_peak_sustained_active"), 100),
        "tensor_frac": frac,
        "tensor_inst": inst,
        "tensor_active": None if frac is None or inst is None else int(inst > 0 and frac >= 0.01),
    }


def _tensor_inst(m: Metrics) -> Number:
    split = f"{HMMA}_type_hfma2.sum"
    hmma, packed = m.get(f"{HMMA}.sum"), m.get(split)
    if split in m and packed is None:
        return m.get("sm__inst_executed_pipe_tensor.sum")
    return None if hmma is None or packed is None else hmma - packed


def inert(candidate: Launches | None, incumbent: Launches | None) -> bool:
    """Whether both calls launch the very same machine code in the same way; false where that cannot be told."""
    if candidate is None or incumbent is None:
        return False
    for side in (candidate, incumbent):
        if not side.complete or not side.kernels or any(kernel.code is None for kernel in side.kernels):
            return False
    return [k.identity() for k in candidate.kernels] == [k.identity() for k in incumbent.kernels]


def context(chip: Chip, contract: str, family: str, launches: Launches | None, shelf: Shelf) -> Context:
    """Where the incumbent's evidence counts."""
    kernels = () if launches is None else launches.kernels
    if not any(kernel.language == "triton" for kernel in kernels):
        language, structure = "library", "library"
    else:
        dots = any(kernel.ttir is not None and shelf.has_dot(kernel.ttir) for kernel in kernels)
        language, structure = "triton", "dot" if dots else "no_dot"
    return Context(chip=chip.name, contract=contract, language=language, family=family, structure=structure)
