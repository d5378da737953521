"""The loop on made-up kernels: the whole story of kb_matmul_scalar, and what is written when."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.engine.run import Run
from gpusolver.events.model import (
    HeadToHead,
    KernelGenerated,
    NoiseFloorMeasured,
    Profiled,
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
    COALESCED,
    INERT,
    TF32_LINE,
    TF32_WORKS,
    FakeExecutor,
    assert_verifies,
    cell_events,
    fired,
    only,
    play,
    request,
    stored,
    verdicts,
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference experiment's problem under all four arms."""
    path = tmp_path_factory.mktemp("story") / "ledger.db"
    play(path, FakeExecutor(), request("off", "on", "off+tabu", "on+tabu"))
    return path


def text_of(path: Path, digest: str) -> str:
    with LedgerReader(path) as reader:
        return reader.artifact(digest).decode()


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


def test_an_attempt_is_durable_before_the_first_measurement_and_its_round_lands_in_one_transaction(
    tmp_path: Path,
) -> None:
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
