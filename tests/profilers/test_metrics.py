"""Which metrics rules need, and which of them go to which chip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.events.model import Clause, Gain, Rule
from gpusolver.profilers.artifacts import Calibration, Copy, Counters, DeviceLimits, Product
from gpusolver.profilers.inputs import INPUTS, ROLES, evidence, is_metric
from gpusolver.profilers.metrics import BASE, CHIPS, for_chip, plan
from gpusolver.profilers.signals import signals

from .examples import CHIP, PROBLEM, launch, launches, samples

PIPE = "sm__pipe_{}cycles_active{}.avg.pct_of_peak_sustained_active"
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
HFMA2 = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
ANY = "sm__inst_executed_pipe_tensor.sum"
COMMON = {
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__cycles_active.avg",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "smsp__sass_inst_executed_op_global_ld.sum",
}


def rule(*signals: str, metrics: tuple[str, ...] = (), gain: str | None = None) -> Rule:
    """A rule over the signals."""
    return Rule(
        name="made_up",
        version=1,
        tier=1,
        position=1,
        stop=False,
        prescription=None,
        clauses=tuple(Clause(signal=name, op=">", threshold=0.5) for name in signals),
        guards=(),
        contracts=(),
        gain=Gain(form="constant" if gain is None else "signal", cap=2.0, signal=gain),
        metrics=metrics,
        origin="test",
        rationale="",
    )


@pytest.mark.parametrize(
    ("chip", "tensor"),
    [
        ("TU104", {PIPE.format("tensor_", ""), ANY, HFMA2}),
        ("GA100", {PIPE.format("tensor_", ""), HMMA, HFMA2}),
        ("GA102", {PIPE.format("tensor_", ""), ANY, HFMA2}),
        ("AD102", {PIPE.format("tensor_", "_v2"), ANY, HFMA2}),
        ("AD104", {PIPE.format("tensor_", "_v2"), ANY, HFMA2}),
        ("GH100", {PIPE.format("tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_", ""), HMMA, HFMA2}),
        ("GB100", {PIPE.format("tensor_subpipe_hmma_", ""), ANY, HFMA2}),
        ("GB202", {PIPE.format("tensor_", ""), ANY, HFMA2}),
    ],
)
def test_base_set_by_chip(chip: str, tensor: set[str]) -> None:
    assert set(for_chip(chip, BASE)) == COMMON | tensor


def test_no_rules_still_need_the_base_set_and_nothing_else() -> None:
    assert plan([]).metrics == tuple(sorted(BASE)) and plan([]).roles == ()


def test_rules_add_what_they_name_and_nothing_twice() -> None:
    own = "smsp__inst_executed_op_local_ld.sum"
    wanted = plan([rule("load_eff", metrics=(own,)), rule("local_bytes", metrics=(own,), gain="traffic_excess")])
    assert wanted.metrics == tuple(sorted({*BASE, own}))


def test_retiring_a_rule_makes_the_plan_smaller_by_what_it_alone_needs() -> None:
    """Both rules need instruction counts; only the second needs stalls."""
    work, stall = rule("fp32_exec_frac"), rule("stall_barrier", "nonfused_frac")
    saved = set(plan([work, stall]).metrics) - set(plan([work]).metrics)
    assert saved == {
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
        "smsp__average_warp_latency_per_inst_issued.ratio",
    }


def test_roles_are_planned_in_a_fixed_order_and_only_where_asked() -> None:
    assert plan([rule("warm_ratio", gain="hot_share"), rule("sass_local")]).roles == ("timeline", "warm", "compiled")
    assert plan([rule("time_us")]).roles == ()


def test_a_share_of_a_gain_is_planned_for() -> None:
    gain = Gain(form="amdahl", cap=4.0, signal="ceiling_headroom", share="hot_share")
    assert plan([replace(rule("time_us"), gain=gain)]).roles == ("timeline",)


def test_tensor_active_needs_both_the_fraction_and_the_count() -> None:
    assert set(evidence("tensor_active")) == {*evidence("tensor_frac"), *evidence("tensor_inst")}
    assert {HMMA, HFMA2, ANY} == set(evidence("tensor_inst"))


def test_every_signal_of_the_format_has_its_inputs_and_none_is_unknown_there() -> None:
    """Section 6.3 names signals in its tables' first column; stalls by kind are written as one line."""
    text = Path(__file__).parents[2].joinpath("replay", "FORMAT.md").read_text("utf-8")
    section = text[text.index("### 6.3") : text.index("### 6.4")]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row)}
    stalls = {name for name in INPUTS if name.startswith("stall_") and name != "stall_max"}
    assert named == set(INPUTS) - stalls
    assert len(stalls) == 17 and "| `stall_<kind>` |" in section


def test_inputs_are_metrics_or_known_roles() -> None:
    known = {"samples", "launches", "calibration", "problem", *ROLES}
    assert {name for inputs in INPUTS.values() for name in inputs if not is_metric(name)} <= known


def test_other_metrics_keep_their_order_on_every_chip() -> None:
    asked = ("z.sum", HMMA, "a.sum", ANY)
    assert for_chip("GH100", asked) == ("z.sum", HMMA, "a.sum")
    assert for_chip("AD102", asked) == ("z.sum", "a.sum", ANY)


@pytest.mark.parametrize("chip", [*CHIPS.values(), "AD104", "GB202"])
def test_what_a_chip_does_not_collect_costs_no_signal(chip: str) -> None:
    """With every rule live: what is dropped are other names of what is kept, and each counter signal can still be computed."""
    asked = plan([rule(*INPUTS)]).metrics
    kept = for_chip(chip, asked)
    assert set(asked) - set(kept) <= {*evidence("tensor_frac"), HMMA, ANY}
    read: dict[str, float | None] = dict.fromkeys(kept, 8.0)
    read[HFMA2] = 4.0 if HMMA in kept else None
    limits = DeviceLimits(
        sms=1,
        warps_per_sm=64,
        blocks_per_sm=32,
        registers_per_sm=65536,
        shared_per_sm=1 << 16,
        shared_reserved=0,
        sm_clock_mhz=1,
    )
    ceiling = Product(flop=1, ns=(1,))
    found = signals(
        PROBLEM, "fp32-strict", CHIP, 1.0, samples([(1, 1)]), launches(launch(registers=1)),
        Counters(collector="c", passes=1, chip=chip, cache="cold", metrics=read),
        Calibration(copy=Copy(bytes=1, ns=(1,)), l2=Copy(bytes=1, ns=(1,)), gemm_fp32=ceiling, limits=limits),
    )  # fmt: skip
    assert {name for name, inputs in INPUTS.items() if any(map(is_metric, inputs))} <= found.keys()


def test_chips_by_compute_capability() -> None:
    assert CHIPS == {"7.5": "TU104", "8.0": "GA100", "8.6": "GA102", "8.9": "AD102", "9.0": "GH100", "10.0": "GB100"}
