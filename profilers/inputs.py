"""What every signal rests on: counters by their metric's name, artifacts by their role. Never collects and never computes one."""

from __future__ import annotations

from . import counted as c
from .signals import (
    DRAM_READ,
    DRAM_WRITE,
    GLOBAL_LOADS,
    HFMA2,
    HMMA,
    LOAD_EFFICIENCY,
    OCCUPANCY,
    TENSOR_ANY,
    TENSOR_METRICS,
)

ROLES = ("timeline", "warm", "compiled", "energy")
"""Artifacts beyond samples, launches and counters, which are collected only where a live rule or a person asks."""

_TRAFFIC = (DRAM_READ, DRAM_WRITE)
_COUNTS = (HMMA, HFMA2, TENSOR_ANY)
_FP32, _FP64 = c.FP32, c.FP64
_SHAPE = ("launches", "calibration", "timeline")
_STALL = {f"stall_{kind}": (c.stall_metric(kind), c.LATENCY) for kind in c.STALLS}

INPUTS: dict[str, tuple[str, ...]] = {
    "time_us": ("samples",),
    "floor_us": ("problem", "calibration"),
    "headroom": ("samples", "problem", "calibration"),
    "intensity": ("problem",),
    "useful_bw_frac": ("samples", "problem", "calibration"),
    "flop_frac": ("samples", "problem"),
    "weight": ("problem",),
    "dtype_bits": ("problem",),
    "kernel_count": ("launches",),
    "mean_kernel_us": ("samples", "launches"),
    "registers": ("launches",),
    "local_bytes": ("launches",),
    "dram_bytes": _TRAFFIC,
    "bw_frac": (*_TRAFFIC, "samples", "calibration"),
    "traffic_excess": (*_TRAFFIC, "problem"),
    "load_eff": (LOAD_EFFICIENCY, GLOBAL_LOADS),
    "occupancy": (OCCUPANCY,),
    "tensor_frac": TENSOR_METRICS,
    "tensor_inst": _COUNTS,
    "tensor_active": (*TENSOR_METRICS, *_COUNTS),
    "ceiling_us": ("problem", "calibration"),
    "ceiling_headroom": ("samples", "problem", "calibration"),
    "rate_frac": ("samples", "problem", "calibration"),
    "spread": ("samples",),
    "throttled": ("samples",),
    "throttled_frac": ("samples",),
    "sm_clock_frac": ("samples", "calibration"),
    **dict.fromkeys(
        (
            "block_threads", "grid_blocks", "idle_lane_frac", "limit_warps", "limit_blocks", "limit_registers", "limit_shared",
            "theoretical_occupancy", "waves", "tail_frac", "sm_use_frac",
        ),
        _SHAPE,
    ),
    "occupancy_gap": (OCCUPANCY, "launches", "calibration"),
    "l2_frac": (c.L2_BYTES, "samples", "calibration"),
    "l1_hit": (c.HITS["l1_hit"],),
    "l2_hit": (c.HITS["l2_hit"],),
    "issue_active": (c.PLAIN["issue_active"],),
    "eligible_warps": (c.PLAIN["eligible_warps"],),
    "lane_frac": (c.LANES["lane_frac"],),
    "lane_frac_pred": (c.LANES["lane_frac_pred"],),
    "store_eff": (c.STORE_EFFICIENCY, c.GLOBAL_ST),
    "local_frac": (c.LOCAL_BYTES, c.GLOBAL_BYTES),
    "wide_frac": c.WIDTHS,
    "async_frac": (c.LDGSTS, c.TMA, c.GLOBAL_LD),
    "shared_loads": (c.SHARED_LD,),
    "atomic_frac": (*c.ATOMS, c.GLOBAL_LD, c.GLOBAL_ST),
    "conflict_frac": (*c.CONFLICTS, *c.WAVEFRONTS),
    "shared_eff": (c.SHARED_EFFICIENCY, c.SHARED_LD, c.SHARED_ST),
    **{name: (metric,) for name, metric in c.PIPES.items()},
    "top_pipe_frac": (*c.PIPES.values(), *TENSOR_METRICS),
    "nonfused_frac": _FP32,
    "fp64_share": (*_FP64, *_FP32),
    "fp32_exec_frac": (*_FP32, "samples", "calibration"),
    "sm_imbalance": ("sm__cycles_active.avg", "sm__cycles_active.max"),
    "l2_imbalance": ("lts__cycles_active.avg", "lts__cycles_active.max"),
    "sysmem_frac": (*c.APERTURES, c.TEX_SECTORS),
    "compression_success": (c.COMPRESSION, c.COMPRESSED),
    "wgmma_frac": (c.WGMMA, *_COUNTS),
    **_STALL,
    "stall_max": tuple(dict.fromkeys(name for pair in _STALL.values() for name in pair)),
    **dict.fromkeys(("span_us", "timeline_kernels", "gap_frac", "hot_share", "hot_operator_share", "attention_share"), ("timeline",)),
    "clock_gap": ("timeline", "samples"),
    "warm_ratio": ("warm", "samples"),
    **dict.fromkeys(("millijoules", "power_w", "temperature_c"), ("energy",)),
    **dict.fromkeys(("sass_tensor", "sass_local", "sass_async", "sass_wide_frac"), ("compiled",)),
}  # fmt: skip
"""Signal to inputs, in the order of the format; a name with `__` is a hardware metric."""


def evidence(signal: str) -> tuple[str, ...]:
    """What a signal rests on; () for one that nothing measures."""
    return INPUTS.get(signal, ())


def is_metric(name: str) -> bool:
    """Whether an input is a hardware metric, and not an artifact's role."""
    return "__" in name
