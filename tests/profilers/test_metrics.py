"""Which metrics rules need, and which of them go to which chip."""

from __future__ import annotations

import pytest

from gpusolver.events.model import Clause, Gain, Rule
from gpusolver.profilers.metrics import BASE, BY_SIGNAL, CHIPS, for_chip, needed

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


def test_no_rules_still_need_the_base_set() -> None:
    assert needed([]) == tuple(sorted(BASE))


def test_rules_add_what_they_name_and_nothing_twice() -> None:
    own = "smsp__inst_executed_op_local_ld.sum"
    wanted = needed([rule("load_eff", metrics=(own,)), rule("local_bytes", metrics=(own,), gain="traffic_excess")])
    assert wanted == tuple(sorted({*BASE, own}))


def test_retiring_a_rule_makes_the_set_smaller() -> None:
    costly = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert set(needed([rule("time_us", metrics=(costly,))])) - set(needed([])) == {costly}


def test_tensor_active_needs_both_the_fraction_and_the_count() -> None:
    assert set(BY_SIGNAL["tensor_active"]) == {*BY_SIGNAL["tensor_frac"], *BY_SIGNAL["tensor_inst"]}
    assert {HMMA, HFMA2, ANY} == set(BY_SIGNAL["tensor_inst"])


def test_other_metrics_keep_their_order_on_every_chip() -> None:
    asked = ("z.sum", HMMA, "a.sum", ANY)
    assert for_chip("GH100", asked) == ("z.sum", HMMA, "a.sum")
    assert for_chip("AD102", asked) == ("z.sum", "a.sum", ANY)


def test_chips_by_compute_capability() -> None:
    assert CHIPS == {"7.5": "TU104", "8.0": "GA100", "8.6": "GA102", "8.9": "AD102", "9.0": "GH100", "10.0": "GB100"}
