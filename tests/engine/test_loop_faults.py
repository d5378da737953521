"""What infrastructure faults, wrong kernels and contracts do to a cell: neutral ends, and no kernel kept that should not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.events.model import (
    Blocked,
    HeadToHead,
    KernelGated,
    KernelGenerated,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    RuleFired,
    RuleRetired,
    RunStopped,
)

from .support import (
    COALESCED,
    INERT,
    TF32_ERROR,
    TF32_LINE,
    TF32_WORKS,
    FakeExecutor,
    Kernel,
    assert_verifies,
    cell_events,
    matmul_story,
    only,
    play,
    request,
    stored,
    verdicts,
)


def faulty(tmp_path: Path, faults: dict[tuple[str, int], str], *, arm: str = "on", rounds: int = 12) -> Path:
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(faults=faults), request(arm, rounds=rounds))
    return path


def scripted(
    tmp_path: Path, kernels: Callable[[str], Kernel], *, rounds: int = 12, contract: str = "tf32-allowed"
) -> Path:
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(kernels), request("on", rounds=rounds, contract=contract))
    return path


# --- infrastructure faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [("gate", 2), ("gate", 7), ("sweep", 1), ("compare", 3), ("count", 2)])
def test_an_infrastructure_fault_interrupts_the_round_and_changes_no_outcome(
    tmp_path: Path, fault: tuple[str, int]
) -> None:
    """Gate 2 is round 1's, gate 7 round 6's; compare 3 is the noise floor of round 5's winner, count 2 its counters."""
    events = cell_events(faulty(tmp_path, {fault: "context_lost"}), "on")
    assert verdicts(events) == [INERT] * 4 + [COALESCED, TF32_WORKS]
    (cut,) = only(events, RoundInterrupted)
    assert "context_lost" in cut.reason
    attempts = [(a.round, a.attempt) for a in only(events, RoundAttempted)]
    assert attempts == sorted([(r, 1) for r in range(7)] + [(cut.round, 2)])
    (retired,) = only(events, RuleRetired)
    assert (retired.successes, retired.failures) == (0, 4)
    assert_verifies(tmp_path / "ledger.db")


def test_three_interruptions_of_one_round_stop_the_cell_without_touching_any_rule(tmp_path: Path) -> None:
    path = faulty(tmp_path, {("gate", n): "worker_lost" for n in (2, 3, 4)})
    events = cell_events(path, "on")
    assert [(e.round, e.attempt) for e in only(events, RoundInterrupted)] == [(1, 1), (1, 2), (1, 3)]
    assert only(events, RunStopped)[0].reason == "interrupted too often"
    assert not only(events, RoundJudged) and not only(events, RuleRetired) and not only(events, RuleFired)
    assert_verifies(path)


def test_a_candidate_whose_counters_fail_in_three_fresh_processes_loses_its_round_and_the_cell_goes_on(
    tmp_path: Path,
) -> None:
    """It may have broken each of them on purpose. Count 1 is of the start, 2 to 4 of the first candidate that does other work."""
    path = faulty(tmp_path, {("count", n): "request_failed" for n in (2, 3, 4)})
    events = cell_events(path, "on")
    assert [(e.round, e.attempt) for e in only(events, RoundInterrupted)] == [(5, 1), (5, 2)]
    assert verdicts(events) == [INERT] * 4 + [("uncoalesced", "AMBIGUOUS", "request_failed"), COALESCED, TF32_WORKS]
    assert only(events, RoundJudged)[4].credit == "neutral"
    assert_verifies(path)


def test_two_interruptions_are_forgotten_once_the_round_has_ended(tmp_path: Path) -> None:
    """Five faults, never three in one round."""
    path = faulty(tmp_path, {("gate", n): "worker_lost" for n in (2, 3, 5, 6, 8)})
    events = cell_events(path, "on")
    assert [(e.round, e.attempt) for e in only(events, RoundInterrupted)] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert verdicts(events) == [INERT] * 4 + [COALESCED, TF32_WORKS]
    assert_verifies(path)


def test_a_comparison_that_could_not_be_timed_is_ambiguous_and_neutral(tmp_path: Path) -> None:
    """Compare 1 profiles the start, compare 2 is the first candidate that does other work than its incumbent."""
    path = faulty(tmp_path, {("compare", 2): "timeout"})
    events = cell_events(path, "on")
    assert verdicts(events) == [INERT] * 4 + [("uncoalesced", "AMBIGUOUS", "timeout"), COALESCED, TF32_WORKS]
    judged = only(events, RoundJudged)[4]
    assert (judged.credit, judged.interval, judged.next_incumbent) == ("neutral", None, judged.incumbent)
    assert not only(events, RoundInterrupted)
    assert_verifies(path)


def test_a_missing_counter_makes_rules_abstain_and_never_reads_as_zero(tmp_path: Path) -> None:
    """A load efficiency of 0 would fire `uncoalesced`, a tensor pipe of 0 `fp32_no_tensorcore`."""
    path = scripted(tmp_path, lambda text: replace(matmul_story(text), metrics=None))
    events = cell_events(path, "on")
    (profiled,) = only(events, Profiled)
    assert not {"load_eff", "tensor_active", "tensor_frac", "occupancy", "dram_bytes"} & set(profiled.signals)
    assert not only(events, RuleFired)
    assert only(events, RunStopped)[0].reason == "no rule fires"
    assert_verifies(path)


def test_refused_counters_lower_the_tier(tmp_path: Path) -> None:
    path = scripted(tmp_path, lambda text: replace(matmul_story(text), metrics=None))
    (profiled,) = only(cell_events(path, "on"), Profiled)
    assert profiled.tier == "compiled"


# --- wrong kernels and contracts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", ["compile_error", "load_error", "run_error", "timeout", "out_of_memory", "worker_lost"]
)
def test_a_candidate_that_fails_is_neutral_to_the_rule(tmp_path: Path, fault: str) -> None:
    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, fault=fault) if TF32_LINE in text else kernel

    path = scripted(tmp_path, kernels, rounds=6)
    events = cell_events(path, "on")
    failed = ("fp32_no_tensorcore", "AMBIGUOUS", f"gate: {fault}")
    # After four fruitless rounds on one kernel the others are asked; on the next kernel the question is open again.
    assert verdicts(events) == [failed] * 4 + [COALESCED, failed]
    assert [j.credit for j in only(events, RoundJudged)] == ["neutral"] * 4 + ["success", "neutral"]
    assert Blocked(rule="fp32_no_tensorcore", reason="spent") in only(events, RuleFired)[4].blocked
    assert not only(
        events, RuleRetired
    )  # the generator's failure, however often: four of its own would have retired it
    assert_verifies(path)


def test_a_wrong_kernel_never_becomes_the_incumbent_however_fast(tmp_path: Path) -> None:
    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, errors=(0.9, 3.0), ns=1000) if kernel.code and "tiled" in kernel.code else kernel

    path = scripted(tmp_path, kernels, rounds=6)
    events = cell_events(path, "on")
    assert verdicts(events)[4:] == [("uncoalesced", "AMBIGUOUS", "gate: wrong_result")] * 2
    start = only(events, KernelGenerated)[0].source
    assert {j.next_incumbent for j in only(events, RoundJudged)} == {start}
    assert_verifies(path)


def test_a_starting_kernel_that_is_wrong_ends_the_cell_at_round_zero(tmp_path: Path) -> None:
    path = scripted(tmp_path, lambda text: replace(matmul_story(text), errors=(0.9, 3.0)))
    events = cell_events(path, "on")
    assert [type(e).__name__ for e in events] == ["RoundAttempted", "KernelGenerated", "KernelGated", "RunStopped"]
    assert only(events, RunStopped)[0].reason == "start unfit"
    said = CliRunner().invoke(main, ["report", str(path)], env={"COLUMNS": "160"}).output
    assert "kb_matmul_scalar: start unfit, wrong_result: draw 0" in said
    assert_verifies(path)


@pytest.mark.parametrize("fault", ["timeout", "worker_lost"])
def test_a_starting_kernel_lost_with_its_worker_is_tried_again_before_the_cell_ends(tmp_path: Path, fault: str) -> None:
    """Whether the kernel or the machine was at fault cannot be known from one loss."""
    path = scripted(tmp_path, lambda text: replace(matmul_story(text), fault=fault))
    events = cell_events(path, "on")
    assert [(e.round, e.attempt) for e in only(events, RoundInterrupted)] == [(0, 1), (0, 2), (0, 3)]
    assert only(events, RunStopped)[0].reason == "interrupted too often"
    assert_verifies(path)


def test_b14_a_time_under_the_physical_floor_is_no_gain(tmp_path: Path) -> None:
    """512^3 takes at least 2 * 512^3 / 494.7 TFLOP/s = 0.54 us: a candidate at 0.1 us is a broken measurement."""

    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, ns=100) if kernel.code and "tiled" in kernel.code else kernel

    path = scripted(tmp_path, kernels, rounds=5)
    assert verdicts(cell_events(path, "on"))[4] == ("uncoalesced", "AMBIGUOUS", "below physical floor")
    assert_verifies(path)


def test_b42_a_kernel_that_is_no_faster_is_never_kept(tmp_path: Path) -> None:
    """Other code in the same time: 12 rounds, no progress, and each rule retires on its own failures."""

    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, ns=300_000, code=f"other {TF32_LINE in text} {'tl.dot(' in text}")

    path = scripted(tmp_path, kernels)
    events = cell_events(path, "on")
    within = "interval within margin"
    assert verdicts(events) == [("fp32_no_tensorcore", "SAME", within)] * 4 + [("uncoalesced", "SAME", within)] * 4
    assert [r.rule for r in only(events, RuleRetired)] == ["fp32_no_tensorcore", "uncoalesced"]
    start = only(events, KernelGenerated)[0].source
    assert {j.next_incumbent for j in only(events, RoundJudged)} == {start}
    assert_verifies(path)


def test_the_strict_contract_blocks_the_precision_rule(tmp_path: Path) -> None:
    path = scripted(tmp_path, matmul_story, contract="fp32-strict")
    events = cell_events(path, "on")
    assert verdicts(events) == [COALESCED]
    (firing,) = only(events, RuleFired)
    assert [(b.rule, b.reason) for b in firing.blocked] == [("fp32_no_tensorcore", "contract")]
    versus = {h.comparison for h in only((r.event for r in stored(path)), HeadToHead) if "versus" in h.comparison}
    assert versus == {"versus:eager_fp32", "versus:compile_fp32"}
    assert_verifies(path)


def test_b71_a_candidate_that_slips_tf32_in_is_refused_under_the_strict_contract(tmp_path: Path) -> None:
    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, errors=TF32_ERROR) if kernel.code and "tiled" in kernel.code else kernel

    strict = cell_events(scripted(tmp_path, kernels, rounds=2, contract="fp32-strict"), "on")
    assert verdicts(strict) == [("uncoalesced", "AMBIGUOUS", "gate: wrong_precision")] * 2
    refused = only(strict, KernelGated)[-1]
    assert refused.outcome == "wrong_precision" and "0.0005" in refused.reason
    assert_verifies(tmp_path / "ledger.db")


def test_a_baseline_whose_answers_the_contract_does_not_allow_is_no_rival(tmp_path: Path) -> None:
    """torch.compile under TF32 is made wrong here, and nothing else; its time is kept, and is no ratio."""

    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        wrong = TF32_LINE in text and "torch.compile(operation)" in text
        return replace(kernel, errors=(0.9, 3.0), ns=1000) if wrong else kernel

    path = scripted(tmp_path, kernels, rounds=6)
    seen = {h.comparison: h for h in only((r.event for r in stored(path)), HeadToHead)}
    wrong = seen["versus:compile_tf32"]
    assert (wrong.outcome, wrong.interval, wrong.samples is None) == ("wrong while timed", None, False)
    assert {h.outcome for h in seen.values() if h is not wrong} <= {"measured", "identical"}
    assert_verifies(path)
