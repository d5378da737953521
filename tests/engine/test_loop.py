"""The loop on made-up kernels: the whole story of kb_matmul_scalar, and what faults, wrong kernels and contracts do to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.events.model import (
    HeadToHead,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    RuleFired,
    RuleRetired,
    RunStopped,
    TilesSwept,
)
from gpusolver.events.reader import LedgerReader
from gpusolver.events.rows import Recorded
from gpusolver.events.writer import LedgerWriter

from .support import (
    TF32_ERROR,
    TF32_LINE,
    FakeExecutor,
    Kernel,
    assert_verifies,
    cell_events,
    fired,
    matmul_story,
    only,
    play,
    request,
    stored,
    verdicts,
)

INERT = ("fp32_no_tensorcore", "SAME", "inert")
COALESCED = ("uncoalesced", "FASTER", "interval beyond margin")
TF32_WORKS = ("fp32_no_tensorcore", "FASTER", "interval beyond margin")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference experiment's problem under all four arms."""
    path = tmp_path_factory.mktemp("story") / "ledger.db"
    play(path, FakeExecutor(), request("off", "on", "off+tabu", "on+tabu"))
    return path


def text_of(path: Path, digest: str) -> str:
    with LedgerReader(path) as reader:
        return reader.artifact(digest).decode()


def faulty(tmp_path: Path, faults: dict[tuple[str, int], str], *, arm: str = "on", rounds: int = 12) -> Path:
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(faults=faults), request(arm, rounds=rounds))
    return path


def scripted(tmp_path: Path, kernels: Callable[[str], Kernel], *, rounds: int = 12, contract: str = "tf32-allowed") -> Path:
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(kernels), request("on", rounds=rounds, contract=contract))
    return path


# --- the story --------------------------------------------------------------------------------------------------------


def test_the_static_table_misfires_until_its_rounds_are_used_up(story: Path) -> None:
    events = cell_events(story, "off")
    assert verdicts(events) == [INERT] * 12
    assert events[-1] == RunStopped(
        run="run1", cell=only(events, RoundJudged)[0].cell, reason="rounds exhausted", rule=None
    )
    judged = only(events, RoundJudged)
    assert all(j.inert and j.interval is None and j.credit == "failure" for j in judged)
    assert not only(events, RuleRetired)
    # Nothing was timed for an inert candidate: the one Profiled is the starting kernel's.
    assert [p.round for p in only(events, Profiled)] == [0]


def test_the_evolving_table_retires_the_rule_after_four_misfires_and_goes_on(story: Path) -> None:
    events = cell_events(story, "on")
    assert verdicts(events) == [INERT] * 4 + [COALESCED, TF32_WORKS]
    assert fired(events) == [
        *[("fp32_no_tensorcore", "no_dot")] * 4,
        ("uncoalesced", "no_dot"),
        ("fp32_no_tensorcore", "dot"),
    ]
    assert only(events, RunStopped)[0].reason == "no rule fires"


def test_a_retirement_names_its_context_and_the_firings_that_it_counts(story: Path) -> None:
    events = cell_events(story, "on")
    (retired,) = only(events, RuleRetired)
    assert (retired.rule, retired.context.structure, retired.successes, retired.failures) == (
        "fp32_no_tensorcore",
        "no_dot",
        0,
        4,
    )
    assert retired.confidence == 1 / 6  # the mean of Beta(1 + 0, 1 + 4)
    stream = "run1/kb_matmul_scalar/tf32-allowed/flags/on/1"
    assert retired.firings == tuple(f"{stream}/{round_}.1" for round_ in range(1, 5))


def test_the_retired_rule_is_named_as_blocked_where_it_would_have_fired(story: Path) -> None:
    coalesce = only(cell_events(story, "on"), RuleFired)[4]
    assert [(b.rule, b.reason) for b in coalesce.blocked] == [("fp32_no_tensorcore", "retired")]
    assert [(c.signal, c.value) for c in coalesce.clauses] == [("load_eff", 0.4)]
    assert coalesce.predicted_gain == 2.5  # 1 / load_eff


def test_the_sweep_takes_the_configuration_with_the_smallest_median(story: Path) -> None:
    events = cell_events(story, "on")
    (swept,) = only(events, TilesSwept)
    assert swept.configs[swept.chosen] == {
        "BLOCK_K": 64, "BLOCK_M": 32, "BLOCK_N": 32, "GROUP_M": 8, "num_stages": 4, "num_warps": 2
    }  # fmt: skip
    made = next(e for e in only(events, KernelGenerated) if e.generator == "template")
    line = 'CONFIG = {"BLOCK_K": 64, "BLOCK_M": 32, "BLOCK_N": 32, "GROUP_M": 8, "num_stages": 4, "num_warps": 2}'
    assert line in text_of(story, made.source).split("\n")
    assert made.firing == swept.firing


def test_a_flag_candidate_is_its_parent_with_one_line_changed(story: Path) -> None:
    made = next(e for e in only(cell_events(story, "on"), KernelGenerated) if e.generator == "flag")
    assert made.parent is not None
    before, after = text_of(story, made.parent).split("\n"), text_of(story, made.source).split("\n")
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [('PRECISION = "ieee"', TF32_LINE)]


def test_credit_goes_to_the_rule_whose_firing_prompted_the_candidate(story: Path) -> None:
    for arm in ("off", "on", "off+tabu", "on+tabu"):
        events = cell_events(story, arm)
        by_id = {f.firing: f for f in only(events, RuleFired)}
        assert len(by_id) == len(only(events, RoundJudged)) > 0
        for judged in only(events, RoundJudged):
            firing, made = by_id[judged.firing], [e for e in only(events, KernelGenerated) if e.firing == judged.firing]
            assert (firing.rule, firing.round, firing.incumbent) == (judged.rule, judged.round, judged.incumbent)
            assert [m.source for m in made] == [judged.candidate]


@pytest.mark.parametrize("arm", ["off+tabu", "on+tabu"])
def test_mere_memory_reaches_the_same_kernel_in_three_rounds(story: Path, arm: str) -> None:
    events = cell_events(story, arm)
    assert verdicts(events) == [INERT, COALESCED, TF32_WORKS]
    assert [(b.rule, b.reason) for b in only(events, RuleFired)[1].blocked] == [("fp32_no_tensorcore", "tabu")]
    evolved = only(cell_events(story, "on"), RoundJudged)[-1].next_incumbent
    assert only(events, RoundJudged)[-1].next_incumbent == evolved


def test_a_faster_kernel_becomes_the_incumbent_and_gets_a_noise_floor_of_its_own(story: Path) -> None:
    events = cell_events(story, "on")
    start = only(events, KernelGenerated)[0].source
    first, second = only(events, RoundJudged)[4:]
    assert (first.incumbent, first.next_incumbent) == (start, first.candidate)
    assert (second.incumbent, second.next_incumbent) == (first.candidate, second.candidate)
    assert [f.source for f in only(events, NoiseFloorMeasured)] == [start, first.candidate, second.candidate]
    assert first.interval is not None and first.interval.median == pytest.approx(300 / 82, rel=2e-3)
    assert second.interval is not None and second.interval.median == pytest.approx(1.5, rel=2e-3)


def test_the_winners_are_compared_and_the_claims_are_answered(story: Path) -> None:
    events = [record.event for record in stored(story)]
    ratios = {h.comparison: h.interval.median if h.interval else h.outcome for h in only(events, HeadToHead)}
    tiled, tiled_tf32 = 82.0, 82.0 * 2 / 3
    expected = {
        "endpoint": 300 / tiled_tf32,
        "endpoint_kernel": 300 / tiled,
        "total": 300 / tiled_tf32,
        "kernel_part": 300 / tiled,
        "precision_part": 1.5,
        "versus:eager_fp32": 60 / tiled_tf32,
        "versus:eager_tf32": 30 / tiled_tf32,
        "versus:compile_fp32": 60 / tiled_tf32,
        "versus:compile_tf32": 30 / tiled_tf32,
    }
    assert ratios.pop("tabu") == "identical"
    assert ratios == pytest.approx(expected, rel=3e-3)


def test_the_verifier_finds_nothing_in_the_story(story: Path) -> None:
    assert_verifies(story)


# --- what is written when ---------------------------------------------------------------------------------------------


class Witness(LedgerWriter):
    """Keeps the kinds of events of each transaction."""

    transactions: list[list[str]]

    def append_many(self, batches, artifacts=()):  # type: ignore[no-untyped-def]
        listed = list(batches)
        seqs = super().append_many(listed, artifacts)
        self.transactions.append([type(event).__name__ for _, _, events in listed for event in events])
        return seqs


def test_an_attempt_is_durable_before_the_first_measurement_and_its_round_lands_in_one_transaction(tmp_path: Path) -> None:
    from gpusolver.engine.run import Run

    path, seen = tmp_path / "ledger.db", []

    def look(stage: str) -> None:
        with LedgerReader(path) as reader:
            records: list[Recorded] = list(reader.recorded())
        seen.append((stage, records[-1].type))

    with Witness(path) as ledger:
        ledger.transactions = []
        Run(ledger, FakeExecutor(before=look), lambda done, total, text: None).start(request("on"))
    in_rounds = [last for stage, last in seen if stage != "calibrate"]
    rounds = in_rounds[: in_rounds.index("RunStopped")]  # the head-to-heads come after the cell's end
    assert rounds and set(rounds) == {"RoundAttempted"}
    alone = [kinds for kinds in ledger.transactions if "RoundAttempted" in kinds]
    assert alone == [["RoundAttempted"]] * 7  # round 0 and six more
    whole = [kinds for kinds in ledger.transactions if "RoundJudged" in kinds]
    assert whole[0] == ["RuleFired", "KernelGenerated", "KernelGated", "RoundJudged"]
    assert whole[3] == ["RuleFired", "KernelGenerated", "KernelGated", "RoundJudged", "RuleRetired"]
    assert whole[4] == [
        "RuleFired", "TilesSwept", "KernelGenerated", "KernelGated", "Profiled", "NoiseFloorMeasured", "RoundJudged"
    ]  # fmt: skip


# --- infrastructure faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [("gate", 2), ("gate", 7), ("sweep", 1), ("compare", 3), ("count", 2)])
def test_an_infrastructure_fault_interrupts_the_round_and_changes_no_outcome(
    story: Path, tmp_path: Path, fault: tuple[str, int]
) -> None:
    """Gate 2 is round 1's, gate 7 round 6's; compare 3 is the noise floor of round 5's winner, count 2 its counters."""
    events = cell_events(faulty(tmp_path, {fault: "context_lost"}), "on")
    assert verdicts(events) == verdicts(cell_events(story, "on"))
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
    """Without counters the two rules that need them say so; a 0 would have fired both."""
    path = scripted(tmp_path, lambda text: replace(matmul_story(text), metrics=None))
    events = cell_events(path, "on")
    (profiled,) = only(events, Profiled)
    assert profiled.tier == "compiled" and not {"load_eff", "tensor_active"} & set(profiled.signals)
    assert not only(events, RuleFired)
    assert only(events, RunStopped)[0].reason == "no rule fires"
    assert_verifies(path)


# --- wrong kernels and contracts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["compile_error", "load_error", "run_error", "timeout", "out_of_memory", "worker_lost"])
def test_a_candidate_that_fails_is_neutral_to_the_rule(tmp_path: Path, fault: str) -> None:
    def kernels(text: str) -> Kernel:
        kernel = matmul_story(text)
        return replace(kernel, fault=fault) if TF32_LINE in text else kernel

    path = scripted(tmp_path, kernels, rounds=6)
    events = cell_events(path, "on")
    assert verdicts(events) == [("fp32_no_tensorcore", "AMBIGUOUS", f"gate: {fault}")] * 6
    assert {j.credit for j in only(events, RoundJudged)} == {"neutral"}
    assert not only(events, RuleRetired)  # the generator's failure, however often: four of its own would have retired it
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
