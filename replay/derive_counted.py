"""The second set's signals of hardware counters (FORMAT.md 6.3). Never reads a metric by another name than the page's."""

from __future__ import annotations

from .calibration import Calibration
from .partial import Metrics, Number, at_most, div, largest, less, plus, times
from .statistic import SPLIT, SPLIT_PRODUCTS, lower_median

STALLS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
_SASS = "smsp__sass_inst_executed_op_"
_SHARED_WAVES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_"
_PER_INST = "smsp__average_thread_inst_executed"
_FIVE_PIPES = {
    "fma_frac": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "fp64_frac": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
    "alu_frac": "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    "lsu_frac": "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active",
    "xu_frac": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
}


def product_rate(calibration: Calibration, path: str) -> float | None:
    """Measured TFLOP/s of a path; of float32 products that are split, a third of TF32's."""
    if path == SPLIT:
        return div(product_rate(calibration, "tf32"), SPLIT_PRODUCTS)
    found = calibration.product(path)
    return None if found is None else found.flop / lower_median(found.ns) / 1000


def counted(m: Metrics, t: Number, calibration: Calibration, first: dict[str, float]) -> dict[str, Number]:
    """Every signal of the counters; `first`: the first set's, of which `tensor_frac` and `tensor_inst` are read."""
    return {
        **_caches(m, t, calibration),
        **_accesses(m),
        **_shared(m),
        **_lanes(m),
        **_pipes(m, first),
        **_arithmetic(m, t, calibration),
        **_balance(m),
        "wgmma_frac": div(m.get("sm__inst_executed_pipe_tensor_op_gmma.sum"), first.get("tensor_inst")),
        **_stalls(m),
    }


def _f(m: Metrics, name: str) -> float | None:
    return div(m.get(name), 100)


def _where(count: Number, value: Number) -> Number:
    """The value, only where the count is above 0."""
    return value if count is not None and count > 0 else None


def _caches(m: Metrics, t: Number, calibration: Calibration) -> dict[str, Number]:
    l2 = calibration.l2
    ceiling = None if l2 is None else l2.bytes / lower_median(l2.ns)
    sysmem, peer = (m.get(f"lts__t_sectors_srcunit_tex_aperture_{where}.sum") for where in ("sysmem", "peer"))
    squeezed = _f(m, "lts__average_gcomp_input_sector_success_rate.pct")
    return {
        "l2_frac": div(div(m.get("lts__t_bytes.sum"), t), ceiling),
        "l1_hit": at_most(1, _f(m, "l1tex__t_sector_hit_rate.pct")),
        "l2_hit": at_most(1, _f(m, "lts__t_sector_hit_rate.pct")),
        "sysmem_frac": div(plus(sysmem, peer), m.get("lts__t_sectors_srcunit_tex.sum")),
        "compression_success": _where(m.get("lts__gcomp_input_sectors.sum"), squeezed),
    }


def _accesses(m: Metrics) -> dict[str, Number]:
    local, other = m.get("sm__sass_data_bytes_mem_local.sum"), m.get("sm__sass_data_bytes_mem_global.sum")
    loads, stores = m.get(f"{_SASS}global_ld.sum"), m.get(f"{_SASS}global_st.sum")
    widths = [m.get(f"{_SASS}memory_{bits}b.sum") for bits in (128, 64, 32, 16, 8)]
    copied = plus(_or_none(m, f"{_SASS}ldgsts.sum"), _or_none(m, f"{_SASS}tma_ld.sum"))
    atomics = plus(m.get(f"{_REQUESTS}atom.sum"), m.get(f"{_REQUESTS}red.sum"))
    stored = _f(m, "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct")
    return {
        "store_eff": _where(stores, stored),
        "local_frac": div(local, plus(local, other)),
        "wide_frac": div(widths[0], plus(*widths)),
        "async_frac": div(copied, plus(copied, loads)),
        "atomic_frac": div(atomics, plus(atomics, plus(loads, stores))),
    }


def _or_none(m: Metrics, name: str) -> Number:
    """0 for an instruction that the chip does not have: its counter is listed, and null."""
    return 0 if name in m and m[name] is None else m.get(name)


def _shared(m: Metrics) -> dict[str, Number]:
    loads, stores = m.get(f"{_SASS}shared_ld.sum"), m.get(f"{_SASS}shared_st.sum")
    conflicts = plus(m.get(f"{_CONFLICTS}ld.sum"), m.get(f"{_CONFLICTS}st.sum"))
    waves = plus(m.get(f"{_SHARED_WAVES}ld.sum"), m.get(f"{_SHARED_WAVES}st.sum"))
    used = _f(m, "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct")
    return {
        "shared_loads": loads,
        "conflict_frac": div(conflicts, waves),
        "shared_eff": _where(plus(loads, stores), used),
    }


def _lanes(m: Metrics) -> dict[str, Number]:
    return {
        "issue_active": m.get("smsp__issue_active.avg.per_cycle_active"),
        "eligible_warps": m.get("smsp__warps_eligible.avg.per_cycle_active"),
        "lane_frac": div(m.get(f"{_PER_INST}_per_inst_executed.ratio"), 32),
        "lane_frac_pred": div(m.get(f"{_PER_INST}_pred_on_per_inst_executed.ratio"), 32),
    }


def _pipes(m: Metrics, first: dict[str, float]) -> dict[str, Number]:
    five: dict[str, Number] = {name: _f(m, metric) for name, metric in _FIVE_PIPES.items()}
    top = None if None in five.values() else largest([*five.values(), first.get("tensor_frac")])
    return {**five, "top_pipe_frac": top}


def _arithmetic(m: Metrics, t: Number, calibration: Calibration) -> dict[str, Number]:
    fused, added, multiplied, *doubles = (
        m.get(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum")
        for op in ("ffma", "fadd", "fmul", "dfma", "dadd", "dmul")
    )
    apart, double = plus(added, multiplied), plus(*doubles)
    single = plus(fused, apart)
    rate = product_rate(calibration, "fp32")
    return {
        "nonfused_frac": div(apart, single),
        "fp64_share": div(double, plus(double, single)),
        "fp32_exec_frac": div(div(plus(times(2, fused), apart), t), times(rate, 1000)),
    }


def _balance(m: Metrics) -> dict[str, Number]:
    return {
        name: less(1, div(m.get(f"{unit}__cycles_active.avg"), m.get(f"{unit}__cycles_active.max")))
        for name, unit in (("sm_imbalance", "sm"), ("l2_imbalance", "lts"))
    }


def _stalls(m: Metrics) -> dict[str, Number]:
    latency = m.get("smsp__average_warp_latency_per_inst_issued.ratio")
    found: dict[str, Number] = {
        f"stall_{kind}": div(m.get(f"smsp__average_warps_issue_stalled_{kind}_per_issue_active.ratio"), latency)
        for kind in STALLS
    }
    return {**found, "stall_max": largest(found.values())}
