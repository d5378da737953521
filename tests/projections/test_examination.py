"""An examination folded, its figures and its confusion matrix counted by hand."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from gpusolver.events.errors import UnreadableLedger
from gpusolver.events.model import (
    CounterRow,
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    ExaminationStated,
    KernelExamined,
    PairCompared,
    PairDeclared,
    RuleAnswer,
    RulesAnswered,
    RuleSeeded,
    RunStopped,
    StaticRulesSeen,
    SubjectDeclared,
    Verdict,
)
from gpusolver.projections.examination import ExaminationView, MatrixRow, figures, fold, matrix
from gpusolver.projections.runs import fold as fold_runs

from .support import A100, STATISTICS, cell_of, problem_of, round_zero, rule, run_stream

Answer = Literal["fires", "abstains", "blocked", "silent"]
RULES = (rule("a"), rule("a", version=2), rule("b"), rule("c"))
"""Two versions of `a`; `c` was planted for nowhere."""

# name: half, rules that must fire, rules that must not; what each rule answers.
SUBJECTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "a hit": ("calibration", ("a",), ("b",)),
    "a near miss": ("calibration", (), ("a",)),
    "b hit": ("calibration", ("b",), ()),
    "held a hit": ("held-out", ("a",), ()),
    "held refused": ("held-out", ("b",), ("a",)),
    "plain": ("", ("b",), ("c",)),
}
ANSWERS: dict[str, dict[str, Answer]] = {
    "a hit": {"a": "fires", "b": "silent", "c": "fires"},
    "a near miss": {"a": "abstains", "b": "silent", "c": "silent"},
    "b hit": {"a": "fires", "b": "blocked", "c": "silent"},
    "held a hit": {"a": "abstains", "b": "fires", "c": "silent"},
    "plain": {"a": "fires", "b": "fires", "c": "fires"},
}


def registered(run: str) -> ExaminationRegistered:
    subjects = tuple(
        SubjectDeclared(
            name=name,
            problem=problem_of(name),
            contract="tf32-allowed",
            source="s" * 64,
            half=half,
            fires=fires,
            silent=silent,
        )
        for name, (half, fires, silent) in SUBJECTS.items()
    )
    truths: tuple[tuple[str, Verdict], ...] = (("same", "SAME"), ("slow", "SLOWER"))
    pairs = tuple(
        PairDeclared(name=name, subject="plain", left="l", right="r", times=3, truth=truth) for name, truth in truths
    )
    return ExaminationRegistered(
        run=run, seed=1, purpose="planted", subjects=subjects, pairs=pairs, statistics=STATISTICS, code={}, environment={}
    )  # fmt: skip


def examined(run: str, subject: str, outcome: str = "passed") -> KernelExamined:
    passed = outcome == "passed"
    return KernelExamined(
        run=run, subject=subject, outcome=outcome, reason="", report="r" * 64, launches=None,
        samples=f"samples of {subject}" if passed else None, counters=None, extras={}, tier="full" if passed else None,
        floor=0.001 if passed else None, signals={"time_us": 1.0} if passed else {},
    )  # fmt: skip


def answered(run: str, subject: str, missing: tuple[str, ...] = ()) -> RulesAnswered:
    told = tuple(
        RuleAnswer(rule=name, version=1, answer=answer, clauses=(), missing=missing, reason=None, predicted_gain=None)
        for name, answer in ANSWERS[subject].items()
    )
    return RulesAnswered(run=run, subject=subject, answers=told)


def compared(run: str, pair: str, number: int, verdict: Verdict) -> PairCompared:
    return PairCompared(
        run=run,
        pair=pair,
        number=number,
        samples=f"{pair} {number}",
        interval=None,
        margin=0.01,
        verdict=verdict,
        reason="",
    )


def rows(*within: bool) -> tuple[CounterRow, ...]:
    return tuple(
        CounterRow(metric=f"m{i}.sum", ours=1.0, theirs=1.0, bound=0.0, within=w) for i, w in enumerate(within)
    )


def stream(run: str = "exam1", **kept: Any) -> list[Event]:
    """A whole examination; `kept` are the missing signals of the answers by subject."""
    measured: list[Event] = []
    for name in SUBJECTS:
        if name in ANSWERS:
            measured += [examined(run, name), answered(run, name, kept.get(name.replace(" ", "_"), ()))]
        else:
            measured.append(examined(run, name, "wrong_result"))
    return [
        registered(run),
        *(RuleSeeded(run=run, rule=entry) for entry in RULES),
        DeviceCalibrated(run=run, device="made up", chip=A100, copy_gbps=1300.0, calibration="k" * 64),
        *measured,
        compared(run, "same", 1, "SAME"),
        compared(run, "slow", 1, "SLOWER"),
        compared(run, "same", 2, "AMBIGUOUS"),
        compared(run, "same", 3, "SAME"),
        CountersCompared(run=run, subject="plain", ours="o", theirs="t", rows=rows(True, False, True)),
        CountersCompared(run=run, subject="a hit", ours="o", theirs="t", rows=rows(True)),
        StaticRulesSeen(run=run, subject="plain", answers="n" * 64),
    ]


def view_of(events: list[Event], run: str = "exam1") -> ExaminationView:
    return fold((run, event) for event in events)[run]


VIEW = view_of(stream())


def test_what_an_examination_holds() -> None:
    assert VIEW.registration == registered("exam1") and VIEW.rules == RULES
    assert VIEW.calibration is not None and VIEW.calibration.copy_gbps == 1300.0
    assert list(VIEW.examined) == list(SUBJECTS) and set(VIEW.answers) == set(ANSWERS)
    assert [entry.number for entry in VIEW.pairs["same"]] == [1, 2, 3]
    assert set(VIEW.counters) == {"plain", "a hit"} and set(VIEW.static) == {"plain"}
    assert (VIEW.stated, VIEW.stopped) == (None, None)


def test_the_end() -> None:
    end = [
        ExaminationStated(run="exam1", figures={"x": 1.0}),
        RunStopped(run="exam1", cell=None, reason="plan completed", rule=None),
    ]
    done = view_of([*stream(), *end])
    assert (done.stated, done.stopped) == ({"x": 1.0}, "plan completed")


def test_figures_by_hand() -> None:
    """Calibration: a fires on its hit (right), b is silent there (right), a abstains on its near miss (right: it does not fire),
    b is blocked on its hit (wrong). Held out: a abstains on its hit (wrong); the refused subject does not count.
    """
    spent = {"same 1": 1_000_000_000, "same 2": 500_000_000, "same 3": 1, "slow 1": 0}
    assert figures(VIEW, spent.__getitem__) == {
        "pair/same/FASTER": 0.0, "pair/same/SLOWER": 0.0, "pair/same/SAME": 2.0, "pair/same/AMBIGUOUS": 1.0,
        "pair/same/sampled_s": 1.500000001,
        "pair/slow/FASTER": 0.0, "pair/slow/SLOWER": 1.0, "pair/slow/SAME": 0.0, "pair/slow/AMBIGUOUS": 0.0,
        "pair/slow/sampled_s": 0.0,
        "matrix/calibration/expected": 4.0, "matrix/calibration/right": 3.0, "matrix/calibration/fired_on_missing": 0.0,
        "matrix/held-out/expected": 1.0, "matrix/held-out/right": 0.0, "matrix/held-out/fired_on_missing": 0.0,
        "counters/compared": 4.0, "counters/within": 3.0, "examined/passed": 5.0, "examined/refused": 1.0,
    }  # fmt: skip


def test_firing_on_what_is_missing_is_counted_by_half() -> None:
    """`a hit` has two rules that fire, `held a hit` one; an abstention on missing signals is as it should be."""
    told = figures(view_of(stream(a_hit=("x",), held_a_hit=("y",), plain=("z",))), lambda digest: 0)
    assert (told["matrix/calibration/fired_on_missing"], told["matrix/held-out/fired_on_missing"]) == (2.0, 1.0)


def test_a_half_without_an_answer_and_a_pair_without_a_comparison_have_figures() -> None:
    told = figures(view_of(stream()[:1]), lambda digest: 0)
    assert (told["matrix/held-out/expected"], told["pair/slow/SLOWER"], told["examined/passed"]) == (0.0, 0.0, 0.0)
    assert not any(name.startswith("matrix//") for name in told)
    assert figures(ExaminationView(run="exam1"), lambda digest: 0) == {
        "counters/compared": 0.0, "counters/within": 0.0, "examined/passed": 0.0, "examined/refused": 0.0,
    }  # fmt: skip


def test_the_matrix_by_rule_and_half() -> None:
    """Each name once, whatever its versions; a rule that nothing was planted for has no row, and shows nowhere."""

    def row(name: str, half: str, *counts: int, also: tuple[str, ...] = ()) -> MatrixRow:
        hits, fired, near_misses, silent = counts
        return MatrixRow(
            rule=name, half=half, hits=hits, fired=fired, near_misses=near_misses, silent=silent, also_fired_on=also
        )

    assert matrix(VIEW) == (
        row("a", "calibration", 1, 1, 1, 1, also=("b hit",)),
        row("a", "held-out", 1, 0, 0, 0),
        row("b", "calibration", 1, 0, 1, 1),
    )


def test_a_near_miss_on_which_the_rule_fires_is_wrong_and_not_told_twice() -> None:
    fired = RuleAnswer(rule="a", version=2, answer="fires", clauses=(), missing=(), reason=None, predicted_gain=2.0)
    row = matrix(view_of([*stream(), RulesAnswered(run="exam1", subject="a near miss", answers=(fired,))]))[0]
    assert (row.near_misses, row.silent, row.also_fired_on) == (1, 0, ("b hit",))


def test_an_event_of_another_examination_is_passed_over() -> None:
    assert fold([("exam1", registered("exam2")), ("exam1/x", registered("exam1"))]) == {}


def test_a_subject_by_its_name() -> None:
    assert VIEW.subject("b hit").fires == ("b",)
    with pytest.raises(UnreadableLedger, match="exam1: no subject 'gone' is registered"):
        VIEW.subject("gone")


def test_runs_and_examinations_share_a_ledger_and_pass_each_other_over() -> None:
    """Both have rules, a calibration and an end of their own."""
    cell = cell_of("toy")
    run = [("run1", event) for event in run_stream((cell,), RULES)] + [
        ("run1/toy/tf32-allowed/flags/on/1", round_zero(cell, "s", {})[0])
    ]
    exams = [("exam1", event) for event in stream()] + [("exam2", event) for event in stream("exam2")]
    mixed = [record for pair in zip(exams[: len(run)], run, strict=True) for record in pair] + exams[len(run) :]
    assert fold_runs(mixed) == fold_runs(run) and set(fold_runs(run)) == {"run1"}
    assert fold(mixed) == fold(exams)
    assert set(fold(mixed)) == {"exam1", "exam2"} and fold(run) == {}
