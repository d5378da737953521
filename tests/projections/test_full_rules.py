"""The full table, a row per rule on hand-made signals, and what holds of the table as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.engine.rules import parse_rules, rules, seed_rules
from gpusolver.events.errors import BadInput
from gpusolver.events.model import Chip, Rule, RuleAnswer
from gpusolver.profilers.inputs import evidence, is_metric
from gpusolver.projections.matcher import answers

from .support import A100, H200, RTX3090

Signals = dict[str, float]
SPLITTING = replace(H200, peaks_tflops=H200.peaks_tflops | {"tf32x3": 494.7 / 3})
FORMAT = Path(__file__).parents[2] / "replay" / "FORMAT.md"


@dataclass(frozen=True)
class Row:
    """Signals at which the rule just fires, its predicted gain there, and what just fails each clause, in the clauses' order.

    `headroom` and further signals of the gain stand in `beside`: without them the gain is the cap.
    """

    rule: str
    hit: Signals
    misses: tuple[Signals, ...]
    gain: float = 1.0
    beside: Signals | None = None


HOT = {"ceiling_headroom": 4.0, "hot_share": 1.0}
# amdahl: share s down to s / 4: 1 / (1 - s + s / 4).
TABLE = [
    Row("noisy", {"spread": 0.1}, ({"spread": 0.0999},)),
    Row("throttled", {"throttled_frac": 0.05}, ({"throttled_frac": 0.049},)),
    Row("clocks_disagree", {"clock_gap": 0.1501}, ({"clock_gap": 0.15},)),
    Row("rate_saturated", {"rate_frac": 0.85}, ({"rate_frac": 0.849},)),
    Row(
        "tensor_opportunity",
        {"dtype_bits": 32, "tensor_active": 0, "fp32_exec_frac": 0.3, "intensity": 32},
        ({"dtype_bits": 16}, {"tensor_active": 1}, {"fp32_exec_frac": 0.299}, {"intensity": 31.9}),
        494.7 / 66.9,
    ),
    Row(
        "split_opportunity",
        {"dtype_bits": 32, "tensor_active": 0, "fp32_exec_frac": 0.3, "intensity": 8},
        ({"dtype_bits": 16}, {"tensor_active": 1}, {"fp32_exec_frac": 0.299}, {"intensity": 7.9}),
        494.7 / 3 / 66.9,
    ),
    Row(
        "mma_sync",
        {"tensor_active": 1, "wgmma_frac": 0.099, "tensor_frac": 0.699},
        ({"tensor_active": 0}, {"wgmma_frac": 0.1}, {"tensor_frac": 0.7}),
        1 / (0.5 + 0.5 / 1.5),
        {"ceiling_headroom": 1.5, "hot_share": 0.5},
    ),
    Row(
        "fp64_work",
        {"dtype_bits": 32, "fp64_frac": 0.15, "fp64_share": 0.1},
        ({"dtype_bits": 64}, {"fp64_frac": 0.149}, {"fp64_share": 0.099}),
        1 / (0.9 + 0.1 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "launch_gaps",
        {"timeline_kernels": 2, "gap_frac": 0.15},
        ({"timeline_kernels": 1}, {"gap_frac": 0.149}),
        1 / (0.85 + 0.15 / 4),
        {"ceiling_headroom": 4},
    ),
    Row("host_memory", {"sysmem_frac": 0.2}, ({"sysmem_frac": 0.199},), 1 / (0.8 + 0.2 / 4), {"ceiling_headroom": 4}),
    Row(
        "excess_traffic",
        {"kernel_count": 1, "traffic_excess": 1.5, "bw_frac": 0.5},
        ({"kernel_count": 2}, {"traffic_excess": 1.49}, {"bw_frac": 0.499}),
        1.5,
    ),
    Row("l2_resident", {"warm_ratio": 1.5}, ({"warm_ratio": 1.49},), 1.5),
    Row("small_grid", {"sm_use_frac": 0.99}, ({"sm_use_frac": 1},), 1 / 0.99),
    Row(
        "partial_warps",
        {"idle_lane_frac": 0.05},
        ({"idle_lane_frac": 0.049},),
        1 / (0.95 + 0.05 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "tail_wave",
        {"tail_frac": 0.2, "sm_imbalance": 0.1},
        ({"tail_frac": 0.199}, {"sm_imbalance": 0.099}),
        1 / (0.9 + 0.1 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "uneven_work",
        {"sm_imbalance": 0.1, "tail_frac": 0.199, "sm_use_frac": 1},
        ({"sm_imbalance": 0.099}, {"tail_frac": 0.2}, {"sm_use_frac": 0.99}),
        1 / (0.9 + 0.1 / 4),
        {"ceiling_headroom": 4},
    ),
    Row("hot_slice", {"l2_imbalance": 0.3}, ({"l2_imbalance": 0.299},), 1 / (0.7 + 0.3 / 4), {"ceiling_headroom": 4}),
    Row(
        "spills",
        {"local_bytes": 8, "local_frac": 0.05, "registers": 64},
        ({"local_bytes": 0}, {"local_frac": 0.049}, {"registers": 63}),
        1 / (0.95 + 0.05 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "local_arrays",
        {"local_bytes": 8, "local_frac": 0.05, "registers": 63},
        ({"local_bytes": 0}, {"local_frac": 0.049}, {"registers": 64}),
        1 / (0.95 + 0.05 / 4),
        {"ceiling_headroom": 4},
    ),
    Row("uncoalesced_stores", {"store_eff": 0.625}, ({"store_eff": 0.7},), 1.6),
    Row(
        "bank_conflicts",
        {"conflict_frac": 0.1},
        ({"conflict_frac": 0.099},),
        1 / (0.9 + 0.1 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "narrow_shared",
        {"shared_eff": 0.4, "conflict_frac": 0.099},
        ({"shared_eff": 0.5}, {"conflict_frac": 0.1}),
        2.5,
    ),
    Row(
        "divergence", {"lane_frac": 0.5, "idle_lane_frac": 0.049}, ({"lane_frac": 0.75}, {"idle_lane_frac": 0.05}), 2.0
    ),
    Row(
        "predicated_off",
        {"lane_frac_pred": 0.5, "lane_frac": 0.75},
        ({"lane_frac_pred": 0.75}, {"lane_frac": 0.749}),
        2.0,
    ),
    Row(
        "atomic_contention",
        {"atomic_frac": 0.05, "issue_active": 0.299, "bw_frac": 0.299},
        ({"atomic_frac": 0.049}, {"issue_active": 0.3}, {"bw_frac": 0.3}),
        4.0,
        HOT,
    ),
    Row("scalar_loads", {"wide_frac": 0.099, "bw_frac": 0.4}, ({"wide_frac": 0.1}, {"bw_frac": 0.399}), 1.5, HOT),
    Row(
        "no_async_copy",
        {"shared_loads": 1, "async_frac": 0.0099, "stall_long_scoreboard": 0.25},
        ({"shared_loads": 0}, {"async_frac": 0.01}, {"stall_long_scoreboard": 0.249}),
        1 / (0.75 + 0.25 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "barrier_stalls",
        {"stall_barrier": 0.3},
        ({"stall_barrier": 0.299},),
        1 / (0.7 + 0.3 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "nonfused_fp",
        {"nonfused_frac": 0.2, "fma_frac": 0.3},
        ({"nonfused_frac": 0.199}, {"fma_frac": 0.299}),
        1 / (0.8 + 0.2 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "slow_pipe",
        {"xu_frac": 0.6, "fma_frac": 0.399},
        ({"xu_frac": 0.599}, {"fma_frac": 0.4}),
        1 / (0.4 + 0.6 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "occupancy_registers",
        {"theoretical_occupancy": 0.499, "registers": 65, "issue_active": 0.599},
        ({"theoretical_occupancy": 0.5}, {"registers": 64}, {"issue_active": 0.6}),
        1.5,
    ),
    Row(
        "occupancy_shared",
        {"theoretical_occupancy": 0.499, "registers": 64, "block_threads": 33, "issue_active": 0.599},
        ({"theoretical_occupancy": 0.5}, {"registers": 65}, {"block_threads": 32}, {"issue_active": 0.6}),
        1.5,
    ),
    Row(
        "occupancy_blocks",
        {"theoretical_occupancy": 0.5, "block_threads": 32, "issue_active": 0.599},
        ({"theoretical_occupancy": 0.501}, {"block_threads": 33}, {"issue_active": 0.6}),
        1.5,
    ),
    Row(
        "occupancy_warps",
        {
            "theoretical_occupancy": 0.79,
            "limit_warps": 2,
            "limit_registers": 2,
            "limit_shared": 2,
            "issue_active": 0.599,
        },
        (
            {"theoretical_occupancy": 0.8},
            {"limit_warps": 3},
            {"limit_registers": 1},
            {"limit_shared": 1},
            {"issue_active": 0.6},
        ),
        1 / 0.79,
    ),
    Row(
        "achieved_occupancy",
        {"occupancy_gap": 0.15, "waves": 1},
        ({"occupancy_gap": 0.149}, {"waves": 0.99}),
        1 / (0.85 + 0.15 / 4),
        {"ceiling_headroom": 4},
    ),
    Row("compression_fails", {"compression_success": 0.199}, ({"compression_success": 0.2},), 1.1),
    Row(
        "under_one_wave",
        {"waves": 0.99, "sm_use_frac": 1, "bw_frac": 0.599, "top_pipe_frac": 0.599},
        ({"waves": 1}, {"sm_use_frac": 0.99}, {"bw_frac": 0.6}, {"top_pipe_frac": 0.6}),
        2.0,
        HOT,
    ),
    Row(
        "idle_pipes",
        {"top_pipe_frac": 0.199, "bw_frac": 0.399, "occupancy": 0.499},
        ({"top_pipe_frac": 0.2}, {"bw_frac": 0.4}, {"occupancy": 0.5}),
        4.0,
        HOT,
    ),
    Row(
        "idle_issue_slots",
        {"issue_active": 0.299, "eligible_warps": 0.499, "occupancy": 0.5, "bw_frac": 0.599},
        ({"issue_active": 0.3}, {"eligible_warps": 0.5}, {"occupancy": 0.499}, {"bw_frac": 0.6}),
        4.0,
        HOT,
    ),
    Row(
        "dominant_stall",
        {"stall_max": 0.3, "issue_active": 0.799},
        ({"stall_max": 0.299}, {"issue_active": 0.8}),
        1 / (0.7 + 0.3 / 4),
        {"ceiling_headroom": 4},
    ),
    Row(
        "latency_bound",
        {"waves": 1, "bw_frac": 0.599, "l2_frac": 0.599, "top_pipe_frac": 0.599, "issue_active": 0.599},
        ({"waves": 0.99}, {"bw_frac": 0.6}, {"l2_frac": 0.6}, {"top_pipe_frac": 0.6}, {"issue_active": 0.6}),
        4.0,
        HOT,
    ),
    Row(
        "busy_pipe",
        {"top_pipe_frac": 0.8, "rate_frac": 0.499},
        ({"top_pipe_frac": 0.799}, {"rate_frac": 0.5}),
        4.0,
        HOT,
    ),
    Row(
        "compute_bound",
        {"top_pipe_frac": 0.6, "bw_frac": 0.499},
        ({"top_pipe_frac": 0.599}, {"bw_frac": 0.5}),
        2.0,
        HOT,
    ),
    Row(
        "other_instructions",
        {"issue_active": 0.6, "rate_frac": 0.199, "bw_frac": 0.499},
        ({"issue_active": 0.599}, {"rate_frac": 0.2}, {"bw_frac": 0.5}),
        4.0,
        HOT,
    ),
    Row(
        "memory_bound", {"bw_frac": 0.6, "top_pipe_frac": 0.499}, ({"bw_frac": 0.599}, {"top_pipe_frac": 0.5}), 2.0, HOT
    ),
    Row("balanced", {"bw_frac": 0.5, "top_pipe_frac": 0.5}, ({"bw_frac": 0.499}, {"top_pipe_frac": 0.499}), 1.5, HOT),
    Row(
        "clock_limited",
        {"sm_clock_frac": 0.8, "top_pipe_frac": 0.6},
        ({"sm_clock_frac": 0.9}, {"top_pipe_frac": 0.599}),
        1.25,
    ),
]
FULL = {rule.name: rule for rule in rules("full")}
every_row = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.rule)


def answer(rule: str, signals: Signals, chip: Chip = SPLITTING, contract: str = "") -> RuleAnswer:
    """What one rule says, with a variant for whatever it prescribes, under the first contract of the rule where none is given."""
    prescription, contract = FULL[rule].prescription, contract or (FULL[rule].contracts or ("tf32-allowed",))[0]
    (found,) = answers((FULL[rule],), signals, chip, contract, () if prescription is None else (prescription,))
    return found


def test_every_rule_has_a_row_here_or_is_a_seed() -> None:
    assert sorted([row.rule for row in TABLE] + [rule.name for rule in seed_rules()]) == sorted(FULL)


@every_row
def test_hit_with_its_predicted_gain(row: Row) -> None:
    found = answer(row.rule, row.hit | (row.beside or {}))
    assert found.answer == "fires"
    assert found.predicted_gain == pytest.approx(row.gain)


@every_row
def test_the_near_side_of_each_threshold(row: Row) -> None:
    """One value a clause, in the order of the clauses."""
    assert [clause.signal for clause in FULL[row.rule].clauses] == [next(iter(miss)) for miss in row.misses]
    for miss in row.misses:
        assert answer(row.rule, row.hit | miss).answer == "silent"


@every_row
def test_each_missing_signal(row: Row) -> None:
    for signal in row.hit:
        found = answer(row.rule, {name: value for name, value in row.hit.items() if name != signal})
        assert (found.answer, found.missing) == ("abstains", (signal,))


@every_row
def test_a_missing_gain_signal_gives_the_cap(row: Row) -> None:
    gain = FULL[row.rule].gain
    if gain.form == "amdahl":
        assert answer(row.rule, row.hit).predicted_gain == gain.cap


def test_nothing_fires_on_nothing() -> None:
    seen = {
        found.answer
        for found in answers(FULL.values(), {}, H200, "bf16-allowed", [r.prescription or "" for r in FULL.values()])
    }
    assert seen == {"abstains"}


def test_no_rule_is_asked_after_a_bad_measurement() -> None:
    """Each sign of one stops in tier 0, and before any stop that would call the kernel good."""
    first = sorted(FULL.values(), key=lambda rule: (rule.tier, rule.position))[:3]
    assert [rule.name for rule in first] == ["noisy", "throttled", "clocks_disagree"]
    assert all(rule.stop and rule.tier == 0 for rule in first)


def test_stops_are_tier_zero_and_only_they() -> None:
    assert {rule.name for rule in FULL.values() if rule.tier == 0} == {rule.name for rule in FULL.values() if rule.stop}


def test_seeds_are_unchanged_but_for_their_position() -> None:
    for seed in seed_rules():
        assert replace(FULL[seed.name], position=seed.position) == seed


def test_specific_rules_stand_before_general_ones() -> None:
    order = {name: (rule.tier, rule.position) for name, rule in FULL.items()}
    assert order["tensor_opportunity"] < order["fp32_no_tensorcore"]
    specific = (
        "tail_wave",
        "bank_conflicts",
        "spills",
        "atomic_contention",
        "barrier_stalls",
        "slow_pipe",
        "divergence",
    )
    general = ("dominant_stall", "latency_bound", "compute_bound", "other_instructions", "memory_bound", "balanced")
    assert max(order[name] for name in specific) < min(order[name] for name in general)
    assert [order[rule.name] for rule in rules("full")] == sorted(order.values())


def test_tensor_rules_on_chips_without_a_faster_path() -> None:
    """An RTX 3090's TF32 is no faster than its fp32; wgmma is counted on compute capability 9.0 alone, so the signal is absent there."""
    hit = {row.rule: row.hit for row in TABLE}
    assert answer("tensor_opportunity", hit["tensor_opportunity"], RTX3090).reason == "guard"
    assert answer("tensor_opportunity", hit["tensor_opportunity"], H200, "fp32-strict").reason == "contract"
    elsewhere = {name: value for name, value in hit["mma_sync"].items() if name != "wgmma_frac"}
    assert answer("mma_sync", elsewhere, A100).missing == ("wgmma_frac",)


def test_split_products_need_a_chip_that_states_them_and_the_strict_contract() -> None:
    """An RTX 3090's TF32 is a third as fast once it is split; where TF32 is allowed the other rule has the better answer."""
    (row,) = (row for row in TABLE if row.rule == "split_opportunity")
    slower = replace(RTX3090, peaks_tflops=RTX3090.peaks_tflops | {"tf32x3": 35.6 / 3})
    assert [answer(row.rule, row.hit, chip).reason for chip in (H200, slower)] == ["guard", "guard"]
    assert answer(row.rule, row.hit, contract="tf32-allowed").reason == "contract"


def test_every_signal_is_defined_in_the_format() -> None:
    text = FORMAT.read_text(encoding="utf-8")
    section = text[text.index("### 6.3") : text.index("### 6.4")]
    defined = {
        name for row in re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    kinds = re.search(r"Kinds of stalls: `([\w ]+)`", section)
    assert kinds is not None
    defined |= {f"stall_{kind}" for kind in kinds[1].split()}
    for rule in FULL.values():
        assert asked(rule) <= defined, rule.name


def asked(rule: Rule) -> set[str]:
    """All signals that a rule reads."""
    named = {rule.gain.signal, None if rule.gain.share is UNSET else rule.gain.share}
    return {clause.signal for clause in rule.clauses} | {name for name in named if isinstance(name, str)}


@pytest.mark.parametrize("name", [name for name, rule in FULL.items() if rule.origin == "full"])
def test_the_metrics_are_those_of_the_signals(name: str) -> None:
    needed = {metric for signal in asked(FULL[name]) for metric in evidence(signal) if is_metric(metric)}
    assert set(FULL[name].metrics) == needed


def test_every_rule_is_explained() -> None:
    """One line of the table in engine/RULES.md each, in the order of the file."""
    text = FORMAT.parents[1].joinpath("engine", "RULES.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (\d) \|", text, re.MULTILINE) == [
        (name, str(r.tier)) for name, r in FULL.items()
    ]


def test_tables_by_name() -> None:
    assert rules("seed") == seed_rules()
    assert {rule.origin for rule in rules("full")} == {"seed", "full"}
    assert [rule.position for rule in rules("full")] == list(range(1, len(FULL) + 1))
    with pytest.raises(BadInput, match="expected one of seed, full"):
        rules("all")


@pytest.mark.parametrize(
    "entry", ['seed = "nothing"', 'seed = "uncoalesced"\ntier = 1', "seed = 1"], ids=["unknown", "changed", "no name"]
)
def test_what_a_seed_entry_may_not_say(entry: str) -> None:
    with pytest.raises(BadInput, match=r"mine\.toml: rule 1: expected `seed` alone and one of below_weight_gate"):
        parse_rules(f"[[rule]]\n{entry}", where="mine.toml", origin="mine")


def test_a_share_belongs_to_amdahl() -> None:
    text = """
    [[rule]]
    name = "mine"
    version = 1
    tier = 1
    prescription = "do"
    clauses = [{ signal = "x", op = "<", threshold = 1 }]
    gain = { form = "signal", cap = 2, signal = "x", share = "y" }
    metrics = []
    rationale = "because"
    """
    with pytest.raises(BadInput, match="share belongs to form 'amdahl' alone"):
        parse_rules(text, where="mine.toml", origin="mine")
    (rule,) = parse_rules(text.replace('"signal", cap', '"amdahl", cap'), where="mine.toml", origin="mine")
    assert (rule.gain.form, rule.gain.share) == ("amdahl", "y")
