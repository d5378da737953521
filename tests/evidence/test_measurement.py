"""The committed examinations of an H200: they verify, and every figure that the README states of the measurement is in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import pytest

from gpusolver.engine.rules import rules
from gpusolver.events.model import KernelExamined, PairCompared, Profiled, RuleRetired
from gpusolver.events.reader import LedgerReader
from gpusolver.problems.planting import planted
from gpusolver.projections.examination import ExaminationView, fold, matrix
from gpusolver.projections.matcher import answers
from gpusolver.projections.prediction import predicted
from gpusolver.projections.runs import fold as fold_runs
from gpusolver.replay.verify import verify

FOLDER = Path(__file__).parents[2] / "problems" / "recordings" / "h200.measurement.v1"
LEDGERS = ("problems", "planted-calibration", "planted-held-out", "timing", "rules")
HEADROOM = 8_000_000
"""Bytes that a committed ledger may have."""


@cache
def exams(name: str) -> dict[str, ExaminationView]:
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return fold((row.stream, row.event) for row in ledger.recorded())


def stated(name: str) -> dict[str, float]:
    """The figures of all examinations of a ledger."""
    return {key: value for view in exams(name).values() for key, value in (view.stated or {}).items()}


@cache
def artifacts(name: str) -> dict[str, Any]:
    """Counters by subject."""
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        events = [row.event for row in ledger.recorded()]
        examined = [e for e in events if isinstance(e, KernelExamined) and e.counters]
        return {e.subject: msgspec.json.decode(ledger.artifact(e.counters or "")) for e in examined}


@pytest.mark.parametrize("name", LEDGERS)
def test_each_ledger_verifies_and_is_small(name: str) -> None:
    path = FOLDER / f"{name}.db"
    assert not verify(path, True).findings
    assert path.stat().st_size < HEADROOM


def test_identical_arms_are_never_told_apart_in_600_comparisons() -> None:
    """None FASTER or SLOWER over kernels from 5 us to 2 ms. SAME in all of four kernels; the fifth, of 8 us, is AMBIGUOUS half of
    the time with at most 80 pairs: its noise is wider than its margin, and the verdict says so.
    """
    figures, pairs = stated("timing"), [p.name for view in exams("timing").values() if view.registration
                                        for p in view.registration.pairs if p.truth == "SAME"]  # fmt: skip
    count = {v: sum(figures[f"pair/{pair}/{v}"] for pair in pairs) for v in ("SAME", "FASTER", "SLOWER", "AMBIGUOUS")}
    assert len(pairs) == 5 and sum(count.values()) == 600
    assert count == {"SAME": 540, "FASTER": 0, "SLOWER": 0, "AMBIGUOUS": 60}
    assert figures["pair/tiled product 512^3/AMBIGUOUS"] == 60


def test_a_two_percent_slowdown_is_called_slower() -> None:
    """At least 95 % of 120 comparisons each, on two kernels of more than 100 us."""
    for view in exams("timing").values():
        assert view.registration is not None and view.stated is not None
        for pair in view.registration.pairs:
            if pair.truth == "SLOWER":
                assert view.stated[f"pair/{pair.name}/SLOWER"] >= 0.95 * pair.times == 114
                assert view.examined[pair.subject].signals["time_us"] > 100


@pytest.mark.parametrize(("name", "half"), [("planted-calibration", "calibration"), ("planted-held-out", "held-out")])
def test_planted_kernels_are_told_from_their_near_misses(name: str, half: str) -> None:
    """51 rules, a hit and a near miss each: at least 95 % right, and no rule fires on a missing signal."""
    figures = stated(name)
    assert figures[f"matrix/{half}/expected"] == 102
    assert figures[f"matrix/{half}/right"] >= 0.95 * 102
    assert figures[f"matrix/{half}/fired_on_missing"] == 0
    (view,) = exams(name).values()
    assert len(matrix(view)) == 51


@pytest.mark.parametrize(("name", "half"), [("planted-calibration", "a"), ("planted-held-out", "b")])
def test_the_rule_that_came_later_answers_as_planned_on_what_was_recorded(name: str, half: str) -> None:
    """`other_instructions` has the planted kernels of `compute_bound`, source by source, whose signals are here."""
    (view,) = exams(name).values()
    (rule,) = (rule for rule in rules("full") if rule.name == "other_instructions")
    sources = {one.name: one.source for one in planted()}
    for kind, expected in (("hit", "fires"), ("near", "silent")):
        recorded = f"compute_bound-{kind}-{half}"
        assert sources[recorded] == sources[f"other_instructions-{kind}-{half}"]
        assert view.calibration is not None and rule.prescription is not None
        signals, chip = view.examined[recorded].signals, view.calibration.chip
        (answer,) = answers((rule,), signals, chip, "fp32-strict", (rule.prescription,))
        assert answer.answer == expected


def test_both_halves_were_asked_the_same_frozen_table() -> None:
    (one,), (other,) = exams("planted-calibration").values(), exams("planted-held-out").values()
    assert one.rules == other.rules and len(one.rules) == 54


def test_counters_of_every_rule_cost_under_half_a_second() -> None:
    """Twelve passes for all 54 rules, two for the seed table's base set."""
    for name, passes in (("planted-held-out", 12), ("problems", 12), ("timing", 2)):
        assert {found["passes"] for found in artifacts(name).values()} == {passes}
    costs = sorted(found["wall_s"] for found in artifacts("planted-held-out").values())
    assert costs[len(costs) // 2] < 0.15 and costs[int(0.98 * len(costs))] < 0.5


def test_a_retirement_makes_the_next_profile_cheaper() -> None:
    """Five passes while a rule over stalls is live, two once it is retired; in another context (a Triton kernel) it is live again."""
    with LedgerReader(FOLDER / "rules.db") as ledger:
        rows = [row for row in ledger.recorded() if row.stream == "run1/sigmoid/tf32-allowed/flags/on/1"]
        retired = next(row.seq for row in rows if isinstance(row.event, RuleRetired))
        passes = [
            (row.seq > retired, msgspec.json.decode(ledger.artifact(row.event.counters))["passes"])
            for row in rows
            if isinstance(row.event, Profiled) and row.event.counters
        ]
    assert passes == [(False, 5)] * 5 + [(True, 2)] * 4 + [(True, 5)]


def test_counts_and_bytes_agree_with_nsight_compute_but_for_what_the_readme_explains() -> None:
    """Counts within 1 %, bytes within 3 % or 1 MB. What does not agree: bank conflicts of no weight, and bytes written back."""
    rows = [(name, row) for view in exams("problems").values() for name, c in view.counters.items() for row in c.rows]
    exact = [(name, row) for name, row in rows if row.metric.endswith(".sum")]
    apart = {(name, row.metric) for name, row in exact if not row.within}
    written, conflicts = "dram__bytes_write.sum", "_pipe_lsu_mem_shared_op_"
    wrote = {name for name, metric in apart if metric == written}
    assert wrote <= {"batched_gemm", "kb_reduce", "sigmoid"}
    assert all(metric == written or conflicts in metric or "wavefronts" in metric for _, metric in apart)
    assert len(apart) <= 0.05 * len(exact)


def test_todays_table_gives_the_same_answers_on_the_recorded_signals() -> None:
    """One threshold changed since: clocks_disagree from 5 % to 15 %, after a false stop in the loop. Both halves stay right."""
    for name in ("planted-calibration", "planted-held-out"):
        (view,) = exams(name).values()
        assert view.registration is not None and view.calibration is not None
        for subject in view.registration.subjects:
            signals = view.examined[subject.name].signals
            said = answers(
                rules("full"), signals, view.calibration.chip, subject.contract, subject.problem.prescriptions
            )
            fired = {answer.rule for answer in said if answer.answer == "fires"}
            assert set(subject.fires) <= fired and not set(subject.silent) & fired, subject.name


def test_the_first_call_after_new_inputs_was_slower_and_always_was_as() -> None:
    """Means of the four calls of a block on the 4.9 us kernel, and the median ratio that followed: why blocks alternate since."""
    with LedgerReader(FOLDER / "timing.db") as ledger:
        compared = [row.event for row in ledger.recorded() if isinstance(row.event, PairCompared)]
        small = [event for event in compared if event.pair == "softmax 512 x 1024"]
        blocks = [b for event in small for b in msgspec.json.decode(ledger.artifact(event.samples))["blocks"]]
    assert [round(mean(block[i] for block in blocks)) for i in range(4)] == [5375, 5039, 5004, 5122]
    medians = [event.interval.median for event in small if event.interval is not None]
    assert round(median(medians), 4) == 1.0066


def test_a_rounds_counters_cost_a_fiftieth_of_a_second_and_a_changed_set_ten_times_that() -> None:
    with LedgerReader(FOLDER / "rules.db") as ledger:
        profiled = [row.event for row in ledger.recorded() if isinstance(row.event, Profiled) and row.event.counters]
        found = [msgspec.json.decode(ledger.artifact(event.counters or "")) for event in profiled]
    costs = sorted(seen["wall_s"] for seen in found if seen["passes"] <= 4)
    assert round(median(costs), 2) in (0.02, 0.03) and sum(cost < 0.15 for cost in costs) >= 0.9 * len(costs)
    assert round(max(seen["wall_s"] for seen in found), 2) == 0.26
    planted = [seen["wall_s"] for name in LEDGERS[1:3] for seen in artifacts(name).values()]
    assert (round(median(planted), 2), round(max(planted), 2)) == (0.11, 0.34)
    assert round(max(seen["wall_s"] for seen in artifacts("problems").values()), 2) == 0.83


def test_events_hold_two_to_three_microseconds_more_than_the_activity_span() -> None:
    """Whatever the kernel takes, from 4.9 us to 1.8 ms: why 5 % and 2 us was too tight for short ones."""
    seen = [examined.signals for view in exams("timing").values() for examined in view.examined.values()]
    beyond = sorted(signals["time_us"] - signals["span_us"] for signals in seen)
    assert len(beyond) == 7 and (round(beyond[0], 1), round(beyond[-1], 1)) == (2.1, 3.0)
    assert round(exams("timing")["exam1"].examined["tiled product 512^3"].signals["spread"], 3) == 0.023


def test_a_third_reading_tells_why_the_bytes_written_differ() -> None:
    """GB on sigmoid: over the whole call, kernel by kernel without a flush, and by Nsight Compute, which empties the L2 in between."""
    (view,) = exams("problems").values()
    with LedgerReader(FOLDER / "problems.db") as ledger:
        kernels = msgspec.json.decode(ledger.artifact(view.examined["sigmoid"].extras["kernels"]))["kernels"]
    (row,) = (row for row in view.counters["sigmoid"].rows if row.metric == "dram__bytes_write.sum")
    third = sum(kernel["dram__bytes_write.sum"] for kernel in kernels)
    assert row.ours is not None and row.theirs is not None
    assert [round(value / 1e9, 3) for value in (row.ours, third, row.theirs)] == [1.319, 1.310, 1.222]


def test_rows_within_bounds_are_as_stated() -> None:
    rows = [row for view in exams("problems").values() for c in view.counters.values() for row in c.rows]
    exact = [row.within for row in rows if row.metric.endswith(".sum")]
    ratios = [row.within for row in rows if not row.metric.endswith(".sum")]
    assert (sum(exact), len(exact), sum(ratios), len(ratios)) == (233, 245, 203, 257)


def test_predicted_and_measured_gains_are_as_stated() -> None:
    """The run under the full table: medians by rule, inert candidates left out."""
    with LedgerReader(FOLDER / "rules.db") as ledger:
        view = fold_runs((row.stream, row.event) for row in ledger.recorded())["run2"]
    found = {row.rule: (round(row.predicted, 2), round(row.measured, 2)) for row in predicted(view)}
    del found["all rules"]
    assert found == {
        "tensor_opportunity": (7.39, 6.71),
        "memory_bound_fusable": (4.95, 5.11),
        "uncoalesced": (2.40, 14.48),
        "fp32_no_tensorcore": (7.39, 1.00),
    }
