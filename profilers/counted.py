"""The second set's counter signals, by replay/FORMAT.md 6.3. A counter that is missing leaves its signal absent, never 0."""

from __future__ import annotations

from collections.abc import Mapping

Number = int | float | None
Metrics = Mapping[str, Number]

STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "short_scoreboard", "sleeping", "tex_throttle",
    "wait",
)  # fmt: skip
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
GLOBAL_LD, GLOBAL_ST = "smsp__sass_inst_executed_op_global_ld.sum", "smsp__sass_inst_executed_op_global_st.sum"
SHARED_LD, SHARED_ST = "smsp__sass_inst_executed_op_shared_ld.sum", "smsp__sass_inst_executed_op_shared_st.sum"
STORE_EFFICIENCY = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
SHARED_EFFICIENCY = "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"
L2_BYTES = "lts__t_bytes.sum"
LDGSTS, TMA = "smsp__sass_inst_executed_op_ldgsts.sum", "smsp__sass_inst_executed_op_tma_ld.sum"
WIDTHS = tuple(f"smsp__sass_inst_executed_op_memory_{bits}b.sum" for bits in (128, 64, 32, 16, 8))
LOCAL_BYTES, GLOBAL_BYTES = "sm__sass_data_bytes_mem_local.sum", "sm__sass_data_bytes_mem_global.sum"
ATOMS = tuple(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red"))
CONFLICTS = tuple(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st"))
WAVEFRONTS = tuple(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st"))
PIPES = {
    "fma_frac": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "fp64_frac": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    **{
        f"{pipe}_frac": f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active"
        for pipe in ("alu", "lsu", "xu")
    },
}
FP32 = tuple(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("ffma", "fadd", "fmul"))
FP64 = tuple(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("dfma", "dadd", "dmul"))
APERTURES = tuple(f"lts__t_sectors_srcunit_tex_aperture_{where}.sum" for where in ("sysmem", "peer"))
TEX_SECTORS = "lts__t_sectors_srcunit_tex.sum"
COMPRESSION, COMPRESSED = "lts__average_gcomp_input_sector_success_rate.pct", "lts__gcomp_input_sectors.sum"
WGMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"
LANES = {
    "lane_frac": "smsp__average_thread_inst_executed_per_inst_executed.ratio",
    "lane_frac_pred": "smsp__average_thread_inst_executed_pred_on_per_inst_executed.ratio",
}
PLAIN = {
    "issue_active": "smsp__issue_active.avg.per_cycle_active",
    "eligible_warps": "smsp__warps_eligible.avg.per_cycle_active",
    "shared_loads": SHARED_LD,
}
HITS = {"l1_hit": "l1tex__t_sector_hit_rate.pct", "l2_hit": "lts__t_sector_hit_rate.pct"}
UNITS = {"sm_imbalance": "sm__cycles_active", "l2_imbalance": "lts__cycles_active"}


def stall_metric(kind: str) -> str:
    """Cycles that a warp waits for one reason, per instruction issued."""
    return f"smsp__average_warps_issue_stalled_{kind}_per_issue_active.ratio"


def counter_signals(
    m: Metrics, time_ns: int, l2_rate: float | None, fp32_tflops: float | None, tensor_inst: Number, tensor_frac: Number
) -> dict[str, Number]:
    """`l2_rate` in GB/s and `fp32_tflops` are measured ceilings, None where unknown; the tensor signals are those of the first set."""
    found = {name: m.get(metric) for name, metric in PLAIN.items()}
    found |= {name: over(m.get(metric), 32) for name, metric in LANES.items()}
    found |= {name: None if (f := percent(m, metric)) is None else min(1, f) for name, metric in HITS.items()}
    found |= (
        _traffic(m, time_ns, l2_rate)
        | _shared(m)
        | _instructions(m, time_ns, fp32_tflops)
        | _pipes(m, tensor_frac)
        | _stalls(m)
    )
    for name, unit in UNITS.items():
        even = over(m.get(f"{unit}.avg"), m.get(f"{unit}.max"))
        found[name] = None if even is None else 1 - even
    found["wgmma_frac"] = over(m.get(WGMMA), tensor_inst)
    return found


def _traffic(m: Metrics, time_ns: int, l2_rate: float | None) -> dict[str, Number]:
    far = total(m, APERTURES)
    return {
        "l2_frac": over(over(m.get(L2_BYTES), time_ns), l2_rate),
        "store_eff": percent(m, STORE_EFFICIENCY) if (m.get(GLOBAL_ST) or 0) > 0 else None,
        "local_frac": part(m.get(LOCAL_BYTES), m.get(GLOBAL_BYTES)),
        "sysmem_frac": over(far, m.get(TEX_SECTORS)),
        "compression_success": percent(m, COMPRESSION) if (m.get(COMPRESSED) or 0) > 0 else None,
    }


def _shared(m: Metrics) -> dict[str, Number]:
    touched = total(m, (SHARED_LD, SHARED_ST))
    return {
        "conflict_frac": over(total(m, CONFLICTS), total(m, WAVEFRONTS)),
        "shared_eff": percent(m, SHARED_EFFICIENCY) if touched is not None and touched > 0 else None,
    }


def _instructions(m: Metrics, time_ns: int, fp32_tflops: float | None) -> dict[str, Number]:
    copied, atoms = _copied(m), total(m, ATOMS)
    fused, single, double = m.get(FP32[0]), total(m, FP32[1:]), total(m, FP64)
    plain = None if fused is None or single is None else fused + single
    work = None if fused is None or single is None else 2 * fused + single
    return {
        "wide_frac": over(m.get(WIDTHS[0]), total(m, WIDTHS)),
        "async_frac": part(copied, m.get(GLOBAL_LD)),
        "atomic_frac": part(atoms, total(m, (GLOBAL_LD, GLOBAL_ST))),
        "nonfused_frac": over(single, plain),
        "fp64_share": part(double, plain),
        "fp32_exec_frac": over(over(work, time_ns), None if fp32_tflops is None else fp32_tflops * 1000),
    }


def _copied(m: Metrics) -> Number:
    """Asynchronous copies: a chip without such an instruction lists its counter as null, and has made none."""
    if LDGSTS not in m or TMA not in m:
        return None
    return (m[LDGSTS] or 0) + (m[TMA] or 0)


def _pipes(m: Metrics, tensor_frac: Number) -> dict[str, Number]:
    found = {name: percent(m, metric) for name, metric in PIPES.items()}
    seen = [value for value in found.values() if value is not None]
    top = max(seen if tensor_frac is None else [*seen, tensor_frac]) if len(seen) == len(PIPES) else None
    return {**found, "top_pipe_frac": top}


def _stalls(m: Metrics) -> dict[str, Number]:
    latency = m.get(LATENCY)
    found = {f"stall_{kind}": over(m.get(stall_metric(kind)), latency) for kind in STALLS}
    seen = [value for value in found.values() if value is not None]
    return {**found, "stall_max": max(seen, default=None)}


def over(top: Number, bottom: Number) -> float | None:
    """A quotient; absent where either side is, or the divisor is 0."""
    return None if top is None or not bottom else top / bottom


def part(one: Number, other: Number) -> float | None:
    """one / (one + other)."""
    return None if one is None or other is None else over(one, one + other)


def percent(m: Metrics, name: str) -> float | None:
    """A metric in percent as a fraction."""
    return over(m.get(name), 100)


def total(m: Metrics, names: tuple[str, ...]) -> Number:
    """A sum in the order of the names, or None where one is missing."""
    values = [m.get(name) for name in names]
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)
