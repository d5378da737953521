"""Generated ledgers of the writing side's pure code, which the verifier, sharing none of it, must find clean."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.events.model import Gain, Origin, Rule
from gpusolver.replay.verify import Report, verify

from .forge import POLICY, forge
from .world import POLISH, RULES, World, rule

WORTH = replace(POLICY, patience=3, order="value")
STOP_SOONER = rule("saturated", 1, [("headroom", "<", 20.0)], tier=0, stop=True, prescription=None)


def check(**options: object) -> Report:
    """Forge with these options and demand a clean report."""
    with tempfile.TemporaryDirectory() as folder:
        report = verify(forge(Path(folder) / "ledger.db", **options), deep=True)  # type: ignore[arg-type]
    assert report.findings == ()
    return report


def test_a_promotion_is_due_after_four_straight_successes() -> None:
    """4 of 4: sum of C(5, k) for k <= 4 is 31 of 32, beyond 19/20; 3 of 3 is 15 of 16, short of it."""
    report = check(rules=(POLISH, *RULES), arms=("on",), repetitions=1, max_rounds=6)
    rounds, (row,) = report.runs[0].rounds, [r for r in report.runs[0].rules if r.rule == "polish"]
    assert [r.rule for r in rounds] == ["polish"] * 6
    assert (row.successes, row.failures, row.confidence, row.promoted) == (6, 0, 7 / 8, True)


def test_a_stop_rule_ends_a_cell() -> None:
    """The firing of a rule with stop has no round of its own."""
    report = check(rules=(STOP_SOONER, *RULES[1:]), arms=("on", "off+tabu"), repetitions=1)
    assert set(report.runs[0].ends.values()) == {"stop rule"}


def test_no_rule_fires() -> None:
    """A table of rules that only abstain or are blocked."""
    report = check(rules=RULES[1:5], arms=("off", "on"), repetitions=1)
    assert set(report.runs[0].ends.values()) == {"no rule fires"}


@pytest.mark.parametrize(("attempts", "end"), [(2, "rounds exhausted"), (3, "interrupted too often")])
def test_interrupted_rounds(attempts: int, end: str) -> None:
    """Two cut-off attempts are tried again, a third ends the cell; none moves a confidence."""
    report = check(arms=("on",), repetitions=1, interrupt=(2, attempts))
    assert report.runs[0].ends == {"run1/toy/tf32-allowed/full/on/1": end}
    assert report.runs[0].rounds[1].attempt == 3 if attempts == 2 else len(report.runs[0].rounds) == 1


def test_an_unfit_start() -> None:
    """A starting kernel that fails its gate ends the cell, and leaves nothing to compare."""
    report = check(world=World(start_error=0.5), arms=("on", "off"), repetitions=1)
    assert set(report.runs[0].ends.values()) == {"start unfit"}
    assert report.runs[0].claims[0].stated == "unanswerable"


def test_a_strict_contract_blocks_the_flag() -> None:
    """Under fp32-strict the tf32 rule is blocked, so that tiles is what fires first."""
    report = check(contract="fp32-strict", arms=("off", "on"), repetitions=1)
    assert {row.rule for row in report.runs[0].rounds} == {"tiles"}


def test_a_gate_that_fails_is_neutral() -> None:
    """Without its contract guard the flag breaks fp32-strict: AMBIGUOUS, and no confidence moves."""
    bold = replace(next(r for r in RULES if r.name == "tf32"), contracts=())
    report = check(contract="fp32-strict", rules=(*RULES[:5], bold, replace(RULES[6], position=1)), arms=("on",))
    verdicts = {(row.rule, row.verdict, row.reason, row.credit) for row in report.runs[0].rounds}
    assert ("tf32", "AMBIGUOUS", "gate: wrong_precision", "neutral") in verdicts


def test_a_recorded_run_is_said_to_be_one() -> None:
    """Its measurements name those of the origin; a note says that nothing was pre-registered."""
    report = check(origin=Origin(head="cd" * 32, events=700), arms=("on",), repetitions=1)
    assert any("recorded, not pre-registered" in note and "cd" * 32 in note for note in report.notes)


@pytest.mark.parametrize("looks", [(8,), (4, 8), (7, 8), (5, 6, 7, 8)])
def test_rounds_by_looks(looks: tuple[int, ...]) -> None:
    """A round ends at the first look that decides; round 0, noise floors and comparisons have all blocks."""
    report = check(arms=("off", "on"), repetitions=1, looks=looks)
    assert {row.verdict for row in report.runs[0].rounds} >= {"FASTER", "SLOWER", "SAME"}


def test_the_second_set_in_a_run() -> None:
    """A calibration with limits and a profile with extras: rules may ask for what is measured beside."""
    hot = rule("tiles", 2, [("hot_share", ">", 0.5), ("warm_ratio", ">", 0.9), ("limit_warps", "==", 16.0)])
    amdahl = replace(hot, gain=Gain(form="amdahl", cap=9.0, signal="headroom", share="hot_share"))
    report = check(arms=("on",), repetitions=1, max_rounds=3, rules=(amdahl,), second=True, looks=(4, 8))
    assert {row.rule for row in report.runs[0].rounds} == {"tiles"}


def test_noise_makes_verdicts_ambiguous() -> None:
    """With noise as large as the effect the interval straddles the margin or the floor widens it."""
    report = check(world=World(seed=3, jitter=30_000), arms=("on", "off"), repetitions=2)
    # SAME alone would show nothing: inert rounds are SAME without any noise.
    assert ("AMBIGUOUS", "interval straddles margin") in {(row.verdict, row.reason) for row in report.runs[0].rounds}


def test_a_patience_ends_a_rule_that_never_ends() -> None:
    """TF32 without its contract guard is wrong under fp32-strict: after three neutral rounds the tiles are asked, in the evolving arm."""
    bold = replace(next(r for r in RULES if r.name == "tf32"), contracts=())
    table = (*RULES[:5], bold, RULES[6])
    report = check(
        contract="fp32-strict",
        rules=table,
        arms=("on", "off"),
        repetitions=1,
        policy=replace(POLICY, patience=3),
        max_rounds=6,
    )
    by_arm = {
        arm: [row.rule for row in report.runs[0].rounds if row.cell.split("/")[-2] == arm] for arm in ("on", "off")
    }
    assert by_arm["off"] == ["tf32"] * 6
    assert by_arm["on"][:4] == ["tf32"] * 3 + ["tiles"]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rule, ...]:
    """The forge's rules with other tiers, places and thresholds, some left out."""
    kept = draw(st.lists(st.sampled_from((POLISH, STOP_SOONER, *RULES[1:])), unique_by=lambda r: r.name, min_size=1))
    factor = st.sampled_from((0.5, 1.0, 3.0))
    return tuple(
        replace(
            r,
            tier=draw(st.integers(0, 2)),
            position=draw(st.integers(1, 9)),
            clauses=tuple(replace(c, threshold=c.threshold * draw(factor)) for c in r.clauses),
        )
        for r in kept
    )


RUNS = st.fixed_dictionaries(
    {
        "world": st.builds(World, st.integers(0, 10**6), st.sampled_from((5, 40, 2_000, 40_000))),
        "rules": tables(),
        "contract": st.sampled_from(("fp32-strict", "tf32-allowed")),
        "arms": st.sampled_from((("off", "on"), ("on+tabu", "on"), ("on", "off+tabu", "off"), ("random", "on"))),
        "repetitions": st.just(1),
        "max_rounds": st.integers(1, 9),
        "interrupt": st.tuples(st.integers(0, 2), st.integers(0, 3)),
        "looks": st.sampled_from((None, (8,), (6, 8), (4, 6, 8))),
        "second": st.booleans(),
        "comparisons": st.sampled_from((None, (), ("total",), ("versus:eager_fp32", "endpoint"))),
        "policy": st.sampled_from((POLICY, WORTH, replace(WORTH, patience=1), replace(POLICY, patience=2))),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUNS)
def test_generated_runs_are_clean(options: dict[str, object]) -> None:
    """Engine-side and verifier agree on every value of every generated run."""
    check(**options)


@pytest.mark.campaign
def test_thousands_of_generated_rounds_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    """The same for 1,500 runs, and how many rounds, retirements and promotions that is."""
    seen = Counter[str]()

    @settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(RUNS)
    def every(options: dict[str, object]) -> None:
        run = check(**options).runs[0]
        seen["runs"] += 1
        seen["rounds"] += len(run.rounds)
        seen["retired"] += sum(len(row.retired) for row in run.rules)
        seen["promoted"] += sum(row.promoted for row in run.rules)

    every()
    with capsys.disabled():
        print(
            "\n"
            + ", ".join(f"{name} {number:,}" for name, number in seen.items())
            + "; both sides agree on all of them"
        )
    assert seen["rounds"] > 5000 and seen["retired"] > 100 and seen["promoted"] > 100
