"""Each derivation of FORMAT.md section 6 on values worked out by hand or taken from a printed table."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from gpusolver.events.model import Chip, ClaimRegistered, Clause, Context, Gain, Guard, Policy, Statistics
from gpusolver.replay import claims, derive_gate, derive_signals, evolution, matching, statistic
from gpusolver.replay.artifacts import Counters, Draw, Errors, Expected, Failure, GateReport, Kernel, Launches, Samples
from gpusolver.replay.texts import with_config, with_precision

from .world import CHIP, PROBLEM, rule

POLICY = Policy(credible_num=19, credible_den=20)
STATISTICS = Statistics(blocks=6, tail_num=1, tail_den=20, margin=0.01, floor_multiple=2.0)
CONTEXT = Context(chip="TOY1", contract="tf32-allowed", language="triton", family="gemm", structure="dot")


@pytest.mark.parametrize(
    ("n", "num", "den", "k"),
    [
        (5, 1, 20, 0),  # 2 * 1 / 32 is above 5 %
        (6, 1, 20, 1),  # 2 * 1 / 64 is 3.1 %, 2 * 7 / 64 is 22 %
        (10, 1, 20, 2),  # 2 * 11 / 1024 is 2.1 %, 2 * 56 / 1024 is 11 %
        (20, 1, 100, 4),  # sign-test table, two-sided 1 %: critical value 3
        (40, 1, 100, 12),  # sign-test table, two-sided 1 %: critical value 11
    ],
)
def test_rank(n: int, num: int, den: int, k: int) -> None:
    """The largest rank whose two tails together stay within the registered tail."""
    assert statistic.rank(n, num, den) == k


def test_interval_and_floor_of_six_blocks() -> None:
    """Ratios 0.5, 1, 1, 2, 2, 4: rank 1, lower median the third."""
    blocks = ((2, 1, 1, 2), (1, 1, 1, 1), (4, 1, 1, 4), (1, 2, 2, 1), (3, 3, 3, 3), (1, 1, 1, 3))
    found = statistic.interval(Samples("cuda_event", "cold", "ns", blocks), STATISTICS)
    assert found is not None
    assert (found.lower, found.median, found.upper, found.blocks, found.rank) == (0.5, 1.0, 4.0, 6, 1)
    assert statistic.noise_floor(found) == 3.0
    assert statistic.lower_median([4, 1, 3, 2]) == 2


def judged(ratio: tuple[int, int], **more: Any) -> tuple[str, str | None]:
    """The verdict on six equal blocks of A over B (ns)."""
    a, b = ratio
    samples = Samples("cuda_event", "cold", "ns", ((a, b, b, a),) * more.pop("blocks", 6))
    fields: dict[str, Any] = {
        "outcome": "passed",
        "inert": False,
        "samples": samples,
        "margin": 0.25,
        "floor_ns": 0.0,
        "statistics": STATISTICS,
    }
    found = statistic.judge(**(fields | more))
    return found.verdict, found.reason


@pytest.mark.parametrize(
    ("ratio", "more", "expected"),
    [
        ((200, 100), {}, ("FASTER", "interval beyond margin")),
        ((125, 100), {}, ("SAME", "interval within margin")),
        ((100, 200), {}, ("SLOWER", "interval beyond margin")),
        ((100, 125), {}, ("SAME", "interval within margin")),
        ((200, 100), {"outcome": "wrong_result", "inert": True}, ("AMBIGUOUS", "gate: wrong_result")),
        ((200, 100), {"inert": True}, ("SAME", "inert")),
        ((200, 100), {"samples": None}, ("AMBIGUOUS", None)),
        ((200, 100), {"floor_ns": 100.5}, ("AMBIGUOUS", "below physical floor")),
        ((200, 100), {"floor_ns": 100.0}, ("FASTER", "interval beyond margin")),
        ((200, 100), {"blocks": 5}, ("AMBIGUOUS", "too few blocks")),
        (
            (200, 100),
            {"blocks": 6, "statistics": msgspec.structs.replace(STATISTICS, blocks=7)},
            ("AMBIGUOUS", "too few blocks"),
        ),
    ],
)
def test_verdicts(ratio: tuple[int, int], more: dict[str, Any], expected: tuple[str, str | None]) -> None:
    """One row per line of the numbered list; a bound on the margin itself is within it."""
    assert judged(ratio, **dict(more)) == expected


def test_an_interval_on_both_sides_of_the_margin_straddles() -> None:
    """Lower 1.0, upper 2.0 with a margin of a quarter."""
    samples = Samples("cuda_event", "cold", "ns", ((1, 1, 1, 1),) * 3 + ((2, 1, 1, 2),) * 3)
    assert judged((1, 1), samples=samples) == ("AMBIGUOUS", "interval straddles margin")


def test_physical_floor_in_ns() -> None:
    """3 MiB at 1000 GB/s is 3145.728 ns; 2 * 512^3 operations at 80 TFLOP/s 3355.4432 ns, at 10 TFLOP/s eight times that."""
    assert statistic.physical_floor(PROBLEM, CHIP, "tf32-allowed") == pytest.approx(3355.4432)
    assert statistic.physical_floor(PROBLEM, CHIP, "fp32-strict") == pytest.approx(26843.5456)
    unknown = msgspec.structs.replace(CHIP, peaks_tflops={})
    assert statistic.physical_floor(PROBLEM, unknown, "fp32-strict") == 0.0


@pytest.mark.parametrize(
    ("successes", "failures", "retired", "promoted"),
    [
        (0, 0, False, False),
        (0, 3, False, False),  # 15 of 16
        (0, 4, True, False),  # 31 of 32
        (1, 5, False, False),  # n = 7: 120 of 128
        (1, 6, True, False),  # n = 8: 247 of 256
        (3, 0, False, False),
        (4, 0, False, True),
        (5, 1, False, False),
        (6, 1, False, True),
    ],
)
def test_retire_and_promote(successes: int, failures: int, retired: bool, promoted: bool) -> None:
    """Sums of Pascal's triangle against 19/20."""
    assert evolution.retire_due(successes, failures, POLICY) is retired
    assert evolution.promote_due(successes, failures, POLICY) is promoted


def test_evidence_counts_by_context_for_retirement_and_pooled_for_promotion() -> None:
    """Four failures in two contexts silence nothing; four successes in two contexts promote."""
    other = msgspec.structs.replace(CONTEXT, structure="no_dot")
    evidence = evolution.Evidence()
    for i, context in enumerate((CONTEXT, other) * 2):
        evidence.credit(("down", 1), context, "failure", f"d{i}")
        evidence.credit(("up", 1), context, "success", f"u{i}")
        evidence.credit(("up", 1), context, "neutral", f"n{i}")
    assert evidence.retirement(("down", 1), CONTEXT, POLICY) is None
    promoted = evidence.promotion(("up", 1), POLICY)
    assert promoted is not None
    assert (promoted.firings, promoted.confidence) == (("u0", "u1", "u2", "u3"), 5 / 6)


def test_gate_seed() -> None:
    """First sixteen hex digits of the digest, without the top bit."""
    text = "42:" + "ab" * 32 + ":3"
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert derive_gate.seed(42, "ab" * 32, 3) == int(digest[:16], 16) % 2**63


GOOD = Draw(
    rel_l2=1e-7,
    max_rms=1e-6,
    shape=(2,),
    dtype="float32",
    device_ok=True,
    type_ok=True,
    inputs_unchanged=True,
    nonfinite=0,
)


def report(*draws: Draw, **more: Any) -> GateReport:
    """A report that expects two float32 elements."""
    fields: dict[str, Any] = {
        "draws": draws,
        "expected": Expected((2,), "float32"),
        "trivial": {"zeros": Errors(1.0, 4.0)},
    }
    return GateReport(**(fields | more))


def draw(**more: Any) -> Draw:
    """A good draw but for these fields."""
    return msgspec.structs.replace(GOOD, **more)


@pytest.mark.parametrize(
    ("given", "contract", "expected"),
    [
        (report(GOOD, GOOD), "fp32-strict", "passed"),
        (report(GOOD, error=Failure("timeout", "5 s")), "fp32-strict", "timeout"),
        (report(), "fp32-strict", "run_error"),
        (report(GOOD, trivial={"zeros": Errors(1e-6, 1e-5)}), "fp32-strict", "unfit_problem"),
        (report(GOOD, draw(shape=[3])), "fp32-strict", "wrong_type"),
        (report(draw(dtype="float16", nonfinite=1)), "fp32-strict", "wrong_type"),
        (report(draw(inputs_unchanged=False, nonfinite=1)), "fp32-strict", "inputs_changed"),
        (report(draw(nonfinite=1, rel_l2=None)), "fp32-strict", "nonfinite"),
        (report(draw(rel_l2=1e-4)), "fp32-strict", "wrong_precision"),
        (report(draw(rel_l2=1e-4)), "tf32-allowed", "passed"),
        (report(draw(rel_l2=1e-2)), "fp32-strict", "wrong_result"),
        (report(draw(max_rms=None)), "fp32-strict", "wrong_result"),
    ],
)
def test_gate_outcomes(given: GateReport, contract: str, expected: str) -> None:
    """One row per outcome, and what goes before what."""
    assert derive_gate.outcome(given, PROBLEM, contract) == expected


def test_signals_of_round_numbers() -> None:
    """T 1000 ns, 100 bytes, 1000 operations, C 2 GB/s, 10 and 80 TFLOP/s: every signal in the head."""
    problem = msgspec.structs.replace(PROBLEM, flops=1_000_000, min_bytes=1000, weight=0.5)
    metrics: dict[str, int | float | None] = {
        "dram__bytes_read.sum": 1000,
        "dram__bytes_write.sum": 500,
        "smsp__sass_inst_executed_op_global_ld.sum": 8,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 25.0,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 50.0,
        "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_active": None,
        "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": None,
        "sm__inst_executed_pipe_tensor.sum": 3,
    }
    kernels = (Kernel("triton", registers=40), Kernel("library", registers=None), Kernel("triton", registers=64))
    found = derive_signals.signals(
        problem,
        "tf32-allowed",
        CHIP,
        2.0,
        Samples("cuda_event", "cold", "ns", ((9, 1000, 3000, 9),)),
        Launches(complete=True, kernels=kernels),
        Counters("made-up", "TOY1", metrics),
    )
    assert found == {
        "time_us": 1.0,
        "floor_us": 0.5,
        "headroom": 2.0,
        "intensity": 1000.0,
        "useful_bw_frac": 0.5,
        "flop_frac": 0.1,
        "weight": 0.5,
        "dtype_bits": 32.0,
        "kernel_count": 3.0,
        "mean_kernel_us": 1 / 3,
        "registers": 64.0,
        "dram_bytes": 1500.0,
        "bw_frac": 0.75,
        "traffic_excess": 1.5,
        "load_eff": 0.25,
        "tensor_frac": 0.5,
        "tensor_inst": 3.0,
        "tensor_active": 1.0,
    }


def test_what_was_not_measured_is_absent() -> None:
    """No counters, an incomplete launch list, a chip without peaks: fewer signals, and none of them 0."""
    bare = Chip(name="?", compute_capability="0", peaks_tflops={}, dram_gbps=0.0)
    listed = Launches(complete=False, kernels=())
    samples = Samples("cuda_event", "cold", "ns", ((5, 5, 5, 5),))
    found = derive_signals.signals(PROBLEM, "fp32-strict", bare, 2.0, samples, listed, None)
    assert set(found) == {"time_us", "intensity", "useful_bw_frac", "weight", "dtype_bits"}
    assert derive_signals.tier(None, listed) == "timing"
    assert derive_signals.tier(None, Launches(complete=True, kernels=())) == "compiled"
    assert derive_signals.tier(Counters("made-up", "TOY1", {}), listed) == "full"
    assert derive_signals.tier(Counters("none", "", {}), listed) == "timing"


def test_hfma2_alone_is_no_tensor_instruction() -> None:
    """12 - 12 leaves none; without the split being listed there is no telling."""
    hmma = "sm__inst_executed_pipe_tensor_op_hmma"
    busy: dict[str, int | float | None] = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 90.0}
    split: dict[str, int | float | None] = {f"{hmma}.sum": 12, f"{hmma}_type_hfma2.sum": 12}
    samples, listed = Samples("cuda_event", "cold", "ns", ((5, 5, 5, 5),)), Launches(complete=False, kernels=())
    one = derive_signals.signals(
        PROBLEM, "fp32-strict", CHIP, 2.0, samples, listed, Counters("made-up", "TOY1", busy | split)
    )
    assert (one["tensor_inst"], one["tensor_active"]) == (0.0, 0.0)
    two = derive_signals.signals(
        PROBLEM, "fp32-strict", CHIP, 2.0, samples, listed, Counters("made-up", "TOY1", {**busy, f"{hmma}.sum": 12})
    )
    assert "tensor_inst" not in two and "tensor_active" not in two


def test_inert_needs_complete_equal_lists_with_code() -> None:
    """Registers and names do not count, scalars do; 1 and true are different arguments."""
    one = Launches(True, (Kernel("triton", code="c", scalars=[1], registers=1),))
    same = Launches(True, (Kernel("triton", code="c", scalars=[1], registers=2),))
    truth = Launches(True, (Kernel("triton", code="c", scalars=[True]),))
    assert derive_signals.inert(one, same)
    assert not derive_signals.inert(one, truth)
    assert not derive_signals.inert(one, None)
    assert not derive_signals.inert(Launches(False, one.kernels), one)
    assert not derive_signals.inert(Launches(True, ()), Launches(True, ()))
    assert not derive_signals.inert(Launches(True, (Kernel("triton"),)), Launches(True, (Kernel("triton"),)))


def ask(*rules: Any, **more: Any) -> matching.Decision:
    """Match on occupancy 0.4 and registers 64; load_eff is missing."""
    fields: dict[str, Any] = {
        "signals": {"occupancy": 0.4, "registers": 64.0},
        "chip": CHIP,
        "context": CONTEXT,
        "prescriptions": ("a", "b"),
        "promoted": frozenset(),
        "retired": frozenset(),
        "tabu": frozenset(),
    }
    return matching.match(rules, matching.Question(**(fields | more)))


LOW = [("occupancy", "<", 0.5)]


def test_a_missing_signal_abstains_unless_a_present_clause_is_false() -> None:
    """Three-valued, and the rules after the one that fires are not asked."""
    found = ask(
        rule("false", 1, [("load_eff", "<", 0.7), ("occupancy", ">", 0.5)]),
        rule("unknown", 2, [("load_eff", "<", 0.7), ("occupancy", "<", 0.5), ("bw_frac", ">", 0.0)]),
        rule("a", 3, LOW),
        rule("b", 4, [("load_eff", "<", 0.7)]),
    )
    assert found.rule is not None and found.rule.name == "a"
    assert [(a.rule, a.missing) for a in found.abstained] == [("unknown", ("load_eff", "bw_frac"))]
    assert found.blocked == ()
    assert [(c.signal, c.value) for c in found.clauses] == [("occupancy", 0.4)]


@pytest.mark.parametrize(
    ("given", "more", "reason"),
    [
        (
            rule("a", 1, LOW, contracts=("bf16-allowed",), guards=(Guard(over="x", under="fp32", at_least=1),)),
            {},
            "contract",
        ),
        (rule("a", 1, LOW, guards=(Guard(over="tf32", under="fp32", at_least=8.5),)), {}, "guard"),
        (rule("a", 1, LOW, guards=(Guard(over="fp32", under="bf16", at_least=0),)), {}, "guard"),
        (rule("c", 1, LOW), {"retired": frozenset({(("c", 1), CONTEXT)})}, "no_variant"),
        (rule("a", 1, LOW), {"retired": frozenset({(("a", 1), CONTEXT)}), "tabu": frozenset({"a"})}, "retired"),
        (rule("a", 1, LOW), {"tabu": frozenset({"a"})}, "tabu"),
    ],
)
def test_blocked_by_the_first_reason(given: Any, more: dict[str, Any], reason: str) -> None:
    """In the order of the page."""
    found = ask(given, **more)
    assert found.rule is None and [b.reason for b in found.blocked] == [reason]


def test_order_of_asking() -> None:
    """Tier, then promoted, then position, then name; of one name the highest version only."""
    table = (
        rule("late", 1, LOW, tier=2),
        rule("b", 5, LOW),
        rule("a", 5, LOW),
        rule("top", 9, LOW),
        rule("a", 1, LOW, version=0),
    )
    names = [r.name for r in matching.ordered(table, frozenset({("top", 1)}))]
    assert names == ["top", "a", "b", "late"]


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (Gain(form="constant", cap=3.0), 3.0),
        (Gain(form="signal", cap=3.0, signal="headroom"), 2.5),
        (Gain(form="signal", cap=2.0, signal="headroom"), 2.0),
        (Gain(form="inverse_signal", cap=9.0, signal="headroom"), 0.4),
        (Gain(form="inverse_signal", cap=9.0, signal="zero"), 9.0),
        (Gain(form="signal", cap=9.0, signal="absent"), 9.0),
        (Gain(form="peak_ratio", cap=99.0, over="tf32", under="fp32"), 8.0),
        (Gain(form="peak_ratio", cap=99.0, over="bf16", under="fp32"), 99.0),
    ],
)
def test_predicted_gain(gain: Gain, expected: float) -> None:
    """min(cap, form), the cap where the form has no value."""
    assert matching.predicted_gain(gain, {"headroom": 2.5, "zero": 0.0}, CHIP) == expected


@pytest.mark.parametrize(
    "op,value,truth", [("<", 1, False), ("<=", 1, True), (">", 1, False), (">=", 1, True), ("==", 1, True)]
)
def test_operators(op: Any, value: float, truth: bool) -> None:
    """All five, on equality."""
    assert matching.holds(Clause(signal="s", op=op, threshold=1.0), {"s": value}) is truth


def claim(at_least: float, decimals: int) -> ClaimRegistered:
    """A claim on a median."""
    return ClaimRegistered(
        claim="c",
        text="",
        problem="p",
        contract="c",
        pool="p",
        comparison="endpoint",
        at_least=at_least,
        decimals=decimals,
    )


@pytest.mark.parametrize(
    ("at_least", "decimals", "medians", "expected"),
    [
        (3.0, 0, (2.5,), "upheld"),  # half up
        (3.0, 0, (2.49,), "not upheld"),
        (5.75, 2, (5.82, 5.78, 5.75), "upheld"),
        (5.75, 2, (5.82, 5.74, 5.75), "not upheld"),
        (1.0, 2, (None, 5.0), "unanswerable"),
        (1.0, 2, (), "unanswerable"),
    ],
)
def test_claims(at_least: float, decimals: int, medians: tuple[float | None, ...], expected: str) -> None:
    """Every repetition, rounded to the claim's decimals."""
    found = claims.answer(claim(at_least, decimals), [None if m is None else (m - 1, m, m + 1) for m in medians])
    assert found.answer == expected
    assert found.medians == tuple(m for m in medians if m is not None)


def test_source_lines() -> None:
    """One PRECISION line or none at all; CONFIG with sorted keys and spaces."""
    assert with_precision('a\nPRECISION = "tf32"\nb', "ieee") == 'a\nPRECISION = "ieee"\nb'
    assert with_precision("a\n", "ieee") is None
    assert with_precision('PRECISION = "tf32"\nPRECISION = "ieee"\n', "ieee") is None
    assert with_config("x\nCONFIG = {}\n", {"B": 2, "A": 1}) == 'x\nCONFIG = {"A": 1, "B": 2}\n'
