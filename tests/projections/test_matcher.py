"""The matcher: three-valued clauses, the order of asking and of blocking, and predicted gains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events.model import Abstained, Blocked, ClauseSeen, Gain, Guard, Rule, RuleAnswer
from gpusolver.projections.matcher import Situation, answers, in_order, match, predicted_gain

from .support import A100, RTX3090, T4, context_of, rule


def situation(**changed: Any) -> Situation:
    fields: dict[str, Any] = {
        "chip": A100,
        "contract": "tf32-allowed",
        "context": context_of(),
        "prescriptions": ("do_a", "do_b"),
        "evolves": True,
        "retired": frozenset(),
        "tabu": frozenset(),
    }
    return Situation(**{**fields, **changed})


A = rule("a", ("x", ">=", 1.0), ("y", "<", 2.0))
B = rule("b", ("z", "==", 0.0), position=2)


def test_a_firing_shows_what_it_saw() -> None:
    found = match((A, B), {"x": 1.0, "y": 1.5, "z": 0.0}, situation())
    assert found.fired == A
    assert found.clauses == (
        ClauseSeen(signal="x", op=">=", threshold=1.0, value=1.0),
        ClauseSeen(signal="y", op="<", threshold=2.0, value=1.5),
    )
    assert (found.abstained, found.blocked, found.predicted_gain) == ((), (), 2.0)


def test_missing_abstains_and_zero_is_a_value() -> None:
    """`y` missing: a cannot be decided. 0 satisfies z == 0, and a missing z does not."""
    assert match((A, B), {"x": 1.0, "z": 0.0}, situation()).abstained == (Abstained(rule="a", missing=("y",)),)
    assert match((A, B), {"x": 1.0, "z": 0.0}, situation()).fired == B
    nothing = match((A, B), {}, situation())
    assert nothing.fired is None
    assert nothing.abstained == (Abstained(rule="a", missing=("x", "y")), Abstained(rule="b", missing=("z",)))
    assert match((rule("a", ("y", "<", 2.0)),), {"y": 0.0}, situation()).fired is not None


def test_a_false_clause_decides_whatever_is_missing() -> None:
    """x < 1 makes a false without y: it neither fires nor abstains."""
    found = match((A, B), {"x": 0.5, "z": 0.0}, situation())
    assert (found.fired, found.abstained) == (B, ())


def test_a_missing_signal_of_two_clauses_is_named_once() -> None:
    ranged = rule("a", ("x", ">", 1.0), ("x", "<", 2.0))
    assert match((ranged,), {}, situation()).abstained == (Abstained(rule="a", missing=("x",)),)


@pytest.mark.parametrize(
    ("op", "below", "at", "above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
        ("==", False, True, False),
    ],
)
def test_operators(op: str, below: bool, at: bool, above: bool) -> None:
    asked = (rule("a", ("x", op, 1.0)),)
    hits = [match(asked, {"x": value}, situation()).fired is not None for value in (0.5, 1.0, 1.5)]
    assert hits == [below, at, above]


def test_rules_after_the_one_that_fires_are_not_asked() -> None:
    assert match((B, A), {"z": 0.0}, situation()).abstained == ()


GUARD = Guard(over="tf32", under="fp32", at_least=1.3)
RETIRED = frozenset({("a", 1, context_of())})


@pytest.mark.parametrize(
    ("reason", "changed", "facts"),
    [
        ("contract", {"contracts": ("bf16-allowed",)}, {"chip": T4}),
        ("guard", {}, {"chip": T4, "prescriptions": ()}),
        ("no_variant", {}, {"prescriptions": (), "retired": RETIRED}),
        ("retired", {}, {"retired": RETIRED, "tabu": {"a"}}),
        ("tabu", {}, {"tabu": {"a"}}),
    ],
)
def test_the_first_reason_blocks(reason: Any, changed: dict[str, Any], facts: dict[str, Any]) -> None:
    """Each row also meets the next reason in the order, which must not be the one that is named."""
    asked = rule("a", ("x", ">=", 1.0), guards=(GUARD,), **changed)
    found = match((asked,), {"x": 1.0}, situation(**facts))
    assert (found.fired, found.blocked) == (None, (Blocked(rule="a", reason=reason),))
    assert (found.clauses, found.predicted_gain) == ((), 1.0)


def test_retirement_silences_one_version_in_one_context_of_arms_that_evolve() -> None:
    asked, signals = (rule("a", ("x", ">=", 1.0)),), {"x": 1.0}
    assert match(asked, signals, situation(retired=RETIRED)).fired is None
    assert match(asked, signals, situation(retired=RETIRED, evolves=False)).fired is not None
    assert match(asked, signals, situation(retired=RETIRED, context=context_of(structure="dot"))).fired is not None
    newer = (rule("a", ("x", ">=", 1.0), version=2),)
    assert match(newer, signals, situation(retired=RETIRED)).fired is not None


def test_a_stop_needs_no_variant() -> None:
    gate = rule("gate", ("x", ">=", 1.0), stop=True)
    assert match((gate,), {"x": 1.0}, situation(prescriptions=())).fired == gate


def test_order_of_asking() -> None:
    """Tier, then promoted, then position, then name; of a name the highest version, which alone a promotion can concern."""
    stop_gate = rule("gate", tier=0, position=9)
    first, second, twin = rule("first", position=1), rule("second", position=2), rule("alike", position=2)
    old, new = rule("late", position=1, tier=2), rule("late", position=5, tier=2, version=2)
    other = rule("other", position=4, tier=2)
    table = (other, new, old, second, twin, first, stop_gate)
    names = [entry.name for entry in in_order(table, frozenset())]
    assert names == ["gate", "first", "alike", "second", "other", "late"]
    assert new in in_order(table, frozenset()) and old not in in_order(table, frozenset())
    promoted = {("second", 1), ("late", 1), ("gate", 1)}
    names = [entry.name for entry in in_order(table, promoted)]
    assert names == ["gate", "second", "first", "alike", "other", "late"]


@pytest.mark.parametrize(
    ("gain", "signals", "expected"),
    [
        (Gain(form="constant", cap=2.0), {}, 2.0),
        (Gain(form="signal", cap=10.0, signal="x"), {"x": 3.5}, 3.5),
        (Gain(form="signal", cap=10.0, signal="x"), {"x": 12.0}, 10.0),
        (Gain(form="signal", cap=10.0, signal="x"), {}, 10.0),
        (Gain(form="inverse_signal", cap=8.0, signal="x"), {"x": 0.25}, 4.0),
        (Gain(form="inverse_signal", cap=8.0, signal="x"), {"x": 0.1}, 8.0),
        (Gain(form="inverse_signal", cap=8.0, signal="x"), {"x": 0.0}, 8.0),
        (Gain(form="inverse_signal", cap=8.0, signal="x"), {}, 8.0),
        (Gain(form="peak_ratio", cap=16.0, over="tf32", under="fp32"), {}, 8.0),
        (Gain(form="peak_ratio", cap=4.0, over="tf32", under="fp32"), {}, 4.0),
        (Gain(form="peak_ratio", cap=16.0, over="fp8", under="fp32"), {}, 16.0),
        # Half of the time four times faster: 1 / (0.5 + 0.125).
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"x": 4.0, "s": 0.5}, 1.6),
        (Gain(form="amdahl", cap=1.5, signal="x", share="s"), {"x": 4.0, "s": 0.5}, 1.5),
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"x": 4.0, "s": 0.0}, 1.0),
        # All of it: no share named, or none known, or one that double counts beyond the whole.
        (Gain(form="amdahl", cap=9.0, signal="x"), {"x": 4.0}, 4.0),
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"x": 4.0}, 4.0),
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"x": 4.0, "s": 1.5}, 4.0),
        # What is at its ceiling already, or beyond it, has nothing to give.
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"x": 0.25, "s": 0.5}, 1.0),
        (Gain(form="amdahl", cap=9.0, signal="x", share="s"), {"s": 0.5}, 9.0),
    ],
)
def test_predicted_gain(gain: Gain, signals: dict[str, float], expected: float) -> None:
    """On an A100, whose TF32 peak is 156 / 19.5 = 8 times its fp32 peak; it has no fp8."""
    assert predicted_gain(gain, signals, A100) == expected


def test_peak_ratio_of_a_chip_without_an_advantage() -> None:
    assert predicted_gain(Gain(form="peak_ratio", cap=16.0, over="tf32", under="fp32"), {}, RTX3090) == 1.0


@given(st.dictionaries(st.sampled_from("xyz"), st.floats(-3, 3)))
def test_a_rule_is_mentioned_at_most_once_and_never_fires_on_what_is_missing(signals: dict[str, float]) -> None:
    found = match((A, B), signals, situation())
    mentioned = [entry.rule for entry in found.abstained] + [entry.rule for entry in found.blocked]
    assert len(mentioned) == len(set(mentioned))
    assert found.fired is None or (
        found.fired.name not in mentioned and all(clause.signal in signals for clause in found.fired.clauses)
    )
    assert match((A, B), signals, situation()) == found


# --- every rule on its own --------------------------------------------------------------------------------------------


def alone(asked: Rule, signals: dict[str, float], **changed: Any) -> RuleAnswer:
    facts: dict[str, Any] = {"chip": A100, "contract": "tf32-allowed", "prescriptions": ("do_a", "do_b"), **changed}
    (found,) = answers((asked,), signals, facts["chip"], facts["contract"], facts["prescriptions"])
    return found


def test_an_answer_shows_what_is_there_and_names_what_is_missing() -> None:
    """Clauses in order with the value seen, a missing signal once; a false clause outweighs what is missing."""
    asked = rule("a", ("x", ">=", 1.0), ("y", "<", 2.0), ("y", ">", 0.0), ("z", "==", 0.0))
    x = ClauseSeen(signal="x", op=">=", threshold=1.0, value=3.0)
    found = alone(asked, {"x": 3.0})
    assert (found.answer, found.clauses, found.missing) == ("abstains", (x,), ("y", "z"))
    assert (found.reason, found.predicted_gain) == (None, None)
    silent = alone(asked, {"x": 0.5})
    assert (silent.answer, silent.missing, silent.predicted_gain) == ("silent", ("y", "z"), None)
    assert silent.clauses[0].value == 0.5
    fires = alone(asked, {"x": 3.0, "y": 1.0, "z": 0.0})
    assert (fires.answer, fires.missing, fires.predicted_gain) == ("fires", (), 2.0)
    assert [clause.value for clause in fires.clauses] == [3.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("reason", "changed", "facts"),
    [
        ("contract", {"contracts": ("bf16-allowed",)}, {"chip": T4, "prescriptions": ()}),
        ("guard", {}, {"chip": T4, "prescriptions": ()}),
        ("no_variant", {}, {"prescriptions": ()}),
    ],
)
def test_a_blocked_answer_still_predicts(reason: Any, changed: dict[str, Any], facts: dict[str, Any]) -> None:
    """Each row also meets the reasons after it in the order, which must not be named; a missing signal comes before all."""
    asked = rule("a", ("x", ">=", 1.0), guards=(GUARD,), **changed)
    found = alone(asked, {"x": 1.0}, **facts)
    assert (found.answer, found.reason, found.predicted_gain) == ("blocked", reason, 2.0)
    assert alone(asked, {}, **facts).answer == "abstains"
    assert alone(asked, {"x": 0.0}, **facts).answer == "silent"


def test_answers_are_of_the_highest_version_in_the_order_of_asking() -> None:
    table = (
        rule("late", position=2),
        rule("old", version=1),
        rule("old", version=2, position=3),
        rule("stop", tier=0, stop=True),
    )
    found = answers(table, {}, A100, "tf32-allowed", ("do_late", "do_old"))
    assert [(answer.rule, answer.version) for answer in found] == [("stop", 1), ("late", 1), ("old", 2)]
    assert {answer.answer for answer in found} == {"fires"}  # a rule without clauses always holds


TABLE = (
    rule("a", ("x", ">=", 1.0), ("y", "<", 2.0)), rule("b", ("z", "==", 0.0), position=2),
    rule("c", ("y", ">", 0.5), position=3, guards=(GUARD,)), rule("d", ("x", "<", 1.0), tier=0, stop=True),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("xyz"), st.sampled_from((0.0, 0.75, 1.5, 3.0))), st.sampled_from((A100, T4)))
def test_what_fires_first_alone_is_what_the_loop_fires(signals: dict[str, float], chip: Any) -> None:
    """Asked one by one without evolution the loop stops at the first `fires`, and mentions those that abstained or were blocked before it."""
    told = answers(TABLE, signals, chip, "tf32-allowed", ("do_a", "do_b"))
    found = match(in_order(TABLE, ()), signals, situation(chip=chip, evolves=False))
    first = next((index for index, answer in enumerate(told) if answer.answer == "fires"), len(told))
    before = told[:first]
    assert found.fired == next((entry for entry in TABLE if told[first:] and entry.name == told[first].rule), None)
    assert [entry.rule for entry in found.abstained] == [a.rule for a in before if a.answer == "abstains"]
    assert [(entry.rule, entry.reason) for entry in found.blocked] == [
        (a.rule, a.reason) for a in before if a.answer == "blocked"
    ]
    if found.fired is not None:
        assert (found.clauses, found.predicted_gain) == (told[first].clauses, told[first].predicted_gain)
