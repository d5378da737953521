"""An examination made up by hand: artifacts as plain JSON, and beside them every value that the page derives of them, worked out by hand.

One device (copy 500 GB/s, L2 2000 GB/s, products 5 and 40 TFLOP/s), one problem, kernels of 2000 ns. No number here was measured.
"""

from __future__ import annotations

from typing import Any

from gpusolver.events.model import Clause, Gain, Guard, Limits, ProblemDeclared, Rule

from .world import rule

Blocks = list[list[int]]

CALIBRATION: dict[str, Any] = {
    "copy": {"bytes": 500_000, "ns": [1000, 990, 1010]},
    "l2": {"bytes": 2_000_000, "ns": [1000]},
    "gemm_fp32": {"flop": 5_000_000, "ns": [1000, 1000]},
    "gemm_tf32": {"flop": 40_000_000, "ns": [1000]},
    "limits": {
        "sms": 4,
        "warps_per_sm": 64,
        "blocks_per_sm": 32,
        "registers_per_sm": 65536,
        "shared_per_sm": 233_472,
        "shared_reserved": 1024,
        "sm_clock_mhz": 2000,
    },
    "clock": "cuda_event",
}
PROBLEM = ProblemDeclared(
    name="toy",
    digest="cd" * 32,
    family="gemm",
    dtype="float32",
    shape={"m": 512, "n": 512},
    flops=8_000_000,
    min_bytes=400_000,
    weight=1.0,
    limits={"tf32-allowed": Limits(rel_l2=1e-3, max_rms=1e-2)},
    prescriptions=("uncoalesced", "fp16", "bf16", "dispatch", "halves", "conflicts"),
)

AA: Blocks = (
    [[2000, 1960, 1960, 2000]] * 3
    + [[2000, 2000, 2000, 2000]] * 5
    + [[2000, 2000, 2040, 2000]]
    + [[2000, 2040, 2040, 2000]] * 3
)
"""Twelve blocks. Ratios, sorted: 4000/4080 three times, 4000/4040, 1 five times, 4000/3920 three times; rank 3 at a tail of 1/20."""
FLOOR = 4000 / 3920 - 1
MARGIN = 2 * FLOOR
WARM: Blocks = [[1700, 1600, 1600, 1700], [1500, 1600, 1500, 1700], [1500, 1700, 1600, 1500]]
"""B: 1500 1600 1600 1600 1600 1700, lower median 1600."""


def samples(blocks: Blocks, turn: int = 0, cache: str = "cold") -> dict[str, Any]:
    """Samples with their blocks turned by some places: another measurement, of the same times."""
    return {
        "clock": "cuda_event",
        "cache": cache,
        "unit": "ns",
        "blocks": blocks[turn:] + blocks[:turn],
        "before": {"sm_clock_mhz": 1900.0, "throttle_bits": 4.0, "temperature_c": 40},
        "after": {"sm_clock_mhz": 1800, "throttle_bits": 0},
    }


def launches(code: str, ttir: str) -> dict[str, Any]:
    """One Triton launch: 50 blocks of 80 threads, 40 registers, 40,000 bytes shared."""
    kernel = {
        "name": "k",
        "language": "triton",
        "code": code,
        "ttir": ttir,
        "grid": [50, 1, 1],
        "block": [80, 1, 1],
        "shared": 40_000,
        "scalars": [],
        "registers": 40,
        "local_bytes": 0,
    }
    return {"complete": True, "kernels": [kernel]}


SASS = "smsp__sass_inst_executed_op_"
STALLED = "smsp__average_warps_issue_stalled_"
METRICS: dict[str, int | float | None] = {
    "dram__bytes_read.sum": 300_000,
    "dram__bytes_write.sum": 500_000.0,
    f"{SASS}global_ld.sum": 100,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 80.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 18.75,
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 25.0,
    "sm__inst_executed_pipe_tensor_op_hmma.sum": 50,
    "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": 10,
    "lts__t_bytes.sum": 1_000_000,
    "l1tex__t_sector_hit_rate.pct": 50.0,
    "lts__t_sector_hit_rate.pct": 120.0,
    "smsp__issue_active.avg.per_cycle_active": 0.5,
    "smsp__warps_eligible.avg.per_cycle_active": 1.5,
    "smsp__average_thread_inst_executed_per_inst_executed.ratio": 16.0,
    "smsp__average_thread_inst_executed_pred_on_per_inst_executed.ratio": 8.0,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct": 75.0,
    f"{SASS}global_st.sum": 50,
    "sm__sass_data_bytes_mem_local.sum": 100,
    "sm__sass_data_bytes_mem_global.sum": 300,
    f"{SASS}memory_128b.sum": 30,
    f"{SASS}memory_64b.sum": 10,
    f"{SASS}memory_32b.sum": 5,
    f"{SASS}memory_16b.sum": 3,
    f"{SASS}memory_8b.sum": 2,
    f"{SASS}ldgsts.sum": None,
    f"{SASS}tma_ld.sum": 25,
    f"{SASS}shared_ld.sum": 64,
    f"{SASS}shared_st.sum": 36,
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": 30,
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": 20,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 6,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": 4,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 30,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 10,
    "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct": 60.0,
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": 30.0,
    "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active": 0.0,
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active": 45.0,
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active": 10.0,
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 5.0,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 600,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 150,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 50,
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 100,
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum": 60,
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum": 40,
    "sm__cycles_active.avg": 75.0,
    "sm__cycles_active.max": 100,
    "lts__cycles_active.avg": 60.0,
    "lts__cycles_active.max": 120,
    "lts__t_sectors_srcunit_tex_aperture_sysmem.sum": 5,
    "lts__t_sectors_srcunit_tex_aperture_peer.sum": 15,
    "lts__t_sectors_srcunit_tex.sum": 40,
    "lts__average_gcomp_input_sector_success_rate.pct": 50.0,
    "lts__gcomp_input_sectors.sum": 10,
    "sm__inst_executed_pipe_tensor_op_gmma.sum": 10,
    "smsp__average_warp_latency_per_inst_issued.ratio": 8.0,
    f"{STALLED}long_scoreboard_per_issue_active.ratio": 4.0,
    f"{STALLED}barrier_per_issue_active.ratio": 2.0,
}
COUNTERS: dict[str, Any] = {"collector": "made-up", "passes": 9, "chip": "TOY1", "cache": "cold", "metrics": METRICS}
THEIRS: dict[str, Any] = {
    "collector": "ncu",
    "passes": 38,
    "chip": "other words",
    "cache": "cold",
    "metrics": {
        "dram__bytes_read.sum": 1_200_000,
        f"{SASS}global_ld.sum": 101,
        f"{SASS}global_st.sum": 49,
        f"{SASS}ldgsts.sum": None,
        "lts__t_sector_hit_rate.pct": None,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 20.0,
        "l1tex__t_sector_hit_rate.pct": 50.5,
        "only__theirs.sum": 1,
    },
}
ROWS: list[tuple[str, float | None, float | None, float, bool]] = [
    ("dram__bytes_read.sum", 300_000.0, 1_200_000.0, 1_000_000.0, True),  # 3 % is 36,000 bytes: the larger bound holds
    ("l1tex__t_sector_hit_rate.pct", 50.0, 50.5, 0.03 * 50.5, True),
    ("lts__t_sector_hit_rate.pct", 120.0, None, 0.0, False),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", 18.75, 20.0, 0.03 * 20.0, False),  # 1.25 apart, 0.6 allowed
    (f"{SASS}global_ld.sum", 100.0, 101.0, 0.01 * 101.0, True),
    (f"{SASS}global_st.sum", 50.0, 49.0, 0.01 * 49.0, False),
    (f"{SASS}ldgsts.sum", None, None, 0.0, True),
]

TIMELINE: dict[str, Any] = {
    "collector": "torch_profiler",
    "calls": [
        [[0, 600, "k"], [700, 1000, "k"]],  # span 1000, covered 900
        [[0, 800, "k"], [600, 1600, "m"]],  # span 1600, covered 1600
        [[10, 410, "k"], [1210, 1610, "m"]],  # span 1600, covered 800
    ],
    "operators": [["aten::bmm", 300], ["aten::_softmax", 100], ["aten::add", 600]],
}
ENERGY: dict[str, Any] = {
    "windows": [
        {"calls": 100, "millijoules": 500, "milliseconds": 10, "temperature_c": 60},
        {"calls": 100, "millijoules": 700, "milliseconds": 20, "temperature_c": 61},
        {"calls": 50, "millijoules": 300, "milliseconds": 6, "temperature_c": 59},
    ]
}
KERNELS: dict[str, Any] = {
    "collector": "cupti_kernel_replay",
    "passes": 3,
    "chip": "TOY1",
    "cache": "cold",
    "kernels": [{"sm__cycles_active.max": 100, "absent.sum": None}],
}


def compiled(code: str) -> dict[str, Any]:
    """Static counts: 8 tensor, 3 + 1 local, 5 asynchronous; 6 of 12 global accesses are of 128 bits."""
    mix = {
        "HMMA.16816.F32": 8,
        "LDG.E.128": 6,
        "LDG.E": 2,
        "STG.E.64": 4,
        "LDL": 3,
        "STL.64": 1,
        "LDGSTS.E.BYPASS.128": 5,
        "IADD3": 90,
    }
    return {"tool": "made up", "kernels": [{"code": code, "mix": mix}]}


FIRST: dict[str, float] = {
    "time_us": 2.0,
    "floor_us": 0.8,  # 400,000 bytes at 500 bytes/ns; 8,000,000 FLOP at 80 TFLOP/s are 100 ns
    "headroom": 2.5,
    "intensity": 20.0,
    "useful_bw_frac": 0.4,
    "flop_frac": 0.4,
    "weight": 1.0,
    "dtype_bits": 32.0,
    "kernel_count": 1.0,
    "mean_kernel_us": 2.0,
    "registers": 40.0,
    "local_bytes": 0.0,
    "dram_bytes": 800_000.0,
    "bw_frac": 0.8,
    "traffic_excess": 2.0,
    "load_eff": 0.8,
    "occupancy": 0.1875,
    "tensor_frac": 0.25,
    "tensor_inst": 40.0,
    "tensor_active": 1.0,
}
SECOND: dict[str, float] = {
    "ceiling_us": 0.8,
    "ceiling_headroom": 2.5,
    "rate_frac": 0.1,
    "spread": 0.04,  # of 24 B samples number 6 is 1960 and number 18 is 2040
    "throttled": 1.0,
    "sm_clock_frac": 0.9,
    "block_threads": 80.0,
    "grid_blocks": 50.0,
    "idle_lane_frac": 1 - 80 / 96,
    "limit_warps": 21.0,  # 64 by 3
    "limit_blocks": 32.0,
    "limit_registers": 16.0,  # 1280 registers a warp: 12 in each quarter of 16,384, 48 warps, by 3
    "limit_shared": 5.0,  # 41,024 bytes take 321 units of 128
    "theoretical_occupancy": 15 / 64,
    "waves": 2.5,
    "tail_frac": 1 / 3,
    "sm_use_frac": 1.0,
    "occupancy_gap": 15 / 64 - 0.1875,
    "l2_frac": 0.25,
    "l1_hit": 0.5,
    "l2_hit": 1.0,
    "issue_active": 0.5,
    "eligible_warps": 1.5,
    "lane_frac": 0.5,
    "lane_frac_pred": 0.25,
    "store_eff": 0.75,
    "local_frac": 0.25,
    "wide_frac": 0.6,
    "async_frac": 0.2,
    "shared_loads": 64.0,
    "atomic_frac": 0.25,
    "conflict_frac": 0.25,
    "shared_eff": 0.6,
    "fma_frac": 0.3,
    "fp64_frac": 0.0,
    "alu_frac": 0.45,
    "lsu_frac": 0.1,
    "xu_frac": 0.05,
    "top_pipe_frac": 0.45,
    "nonfused_frac": 0.25,
    "fp64_share": 0.2,
    "fp32_exec_frac": 0.7 / 5000,  # 1400 FLOP in 2000 ns, of 5 TFLOP/s
    "sm_imbalance": 0.25,
    "l2_imbalance": 0.5,
    "sysmem_frac": 0.5,
    "compression_success": 0.5,
    "wgmma_frac": 0.25,
    "stall_barrier": 0.25,
    "stall_long_scoreboard": 0.5,
    "stall_max": 0.5,
    "span_us": 1.6,
    "timeline_kernels": 2.0,
    "gap_frac": 0.1,
    "hot_share": 0.6,  # k 2100 of 3500 ns
    "clock_gap": -1.0,  # (400 - 2000) / 1600
    "hot_operator_share": 0.6,
    "attention_share": 0.4,
    "warm_ratio": 1.25,
    "millijoules": 6.0,
    "power_w": 50.0,
    "temperature_c": 61.0,
    "sass_tensor": 8.0,
    "sass_local": 4.0,
    "sass_async": 5.0,
    "sass_wide_frac": 0.5,
}
SIGNALS = FIRST | SECOND

STALE = rule("uncoalesced", 2, [("load_eff", "<", 0.1)], version=0)
RULES: tuple[Rule, ...] = (
    rule("saturated", 1, [("headroom", "<", 2.0)], tier=0, stop=True, prescription=None),
    STALE,
    rule(
        "uncoalesced",
        2,
        [("load_eff", "<", 0.9)],
        gain=Gain(form="amdahl", cap=9.0, signal="traffic_excess", share="bw_frac"),
    ),
    rule("conflicts", 3, [("conflict_frac", ">", 0.5)]),
    rule("dispatch", 4, [("load_eff", "<", 0.9), ("stall_wait", ">", 0.1), ("stall_wait", ">", 0.2)]),
    rule("halves", 5, [("stall_wait", ">", 0.1), ("occupancy", ">", 0.9)]),
    rule("bf16", 6, [("time_us", ">", 0.0)], contracts=("bf16-allowed",)),
    rule("fp16", 7, [("time_us", ">", 0.0)], guards=(Guard(over="fp16", under="fp32", at_least=2.0),)),
    rule("vary", 8, [("time_us", ">", 0.0)], gain=Gain(form="signal", cap=2.0, signal="headroom")),
    rule("no_clause", 1, [], tier=2, stop=True, prescription=None, gain=Gain(form="inverse_signal", cap=1.5)),
)
Told = tuple[str, int, str, list[int], list[str], str | None, float | None]
ANSWERS: list[Told] = [
    # rule, version, answer, clauses with a present signal (by index), missing, reason, gain
    ("saturated", 1, "silent", [0], [], None, None),
    ("uncoalesced", 1, "fires", [0], [], None, 1 / ((1 - 0.8) + 0.8 / 2)),
    ("conflicts", 1, "silent", [0], [], None, None),
    ("dispatch", 1, "abstains", [0], ["stall_wait"], None, None),
    ("halves", 1, "silent", [1], ["stall_wait"], None, None),
    ("bf16", 1, "blocked", [0], [], "contract", 2.0),
    ("fp16", 1, "blocked", [0], [], "guard", 2.0),
    ("vary", 1, "blocked", [0], [], "no_variant", 2.0),
    ("no_clause", 1, "fires", [], [], None, 1.5),
]


def clauses(name: str) -> tuple[Clause, ...]:
    """The clauses of a rule's highest version."""
    return next(r.clauses for r in reversed(RULES) if r.name == name)


FASTER: Blocks = [[2000, 1500, 1500, 2000]] * 8
"""Decided at the second of three looks, at 4, 8 and 12 blocks: rank 0 at four (2 * 60 * 1 > 16), 1 at eight (120 of 256)."""
SAME: Blocks = [[2200, 2000, 2000, 2200]] + [[2000, 2000, 2000, 2000]] * 11
"""An outlier of 1.1 leaves the margin at eight blocks, where rank 1 takes the largest; rank 2 at twelve (1560 of 4096) does not."""
BELOW: Blocks = [[2000, 300, 300, 2000]] * 4
"""No correct kernel is under 400 ns (400,000 bytes at 1000 GB/s): the first look ends it, without an interval."""
