"""The fold of one cell: what each event changes, when an attempt is open, and why a cell must stop."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusolver.events.errors import BadInput, UnreadableLedger
from gpusolver.events.model import (
    Event,
    KernelGenerated,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    RulePromoted,
    RuleRetired,
)
from gpusolver.projections.asking import ask, must_stop, next_attempt
from gpusolver.projections.cell import CellState, fold
from gpusolver.projections.cell_plan import arm_policy
from gpusolver.projections.evolution import decide, evidence

from .support import (
    Outcome,
    World,
    cell_of,
    context_of,
    floor_of,
    gated,
    plan_of,
    profiled,
    round_zero,
    rule,
    simulate,
    stop,
)

CELL = cell_of()
TABLE = (rule("a", ("x", "<", 2.0)), rule("b", ("x", "<", 9.0), position=2))


def after(*events: Event) -> CellState:
    state = CellState(cell=CELL)
    for event in events:
        state = fold(state, event)
    return state


def attempted(round_: int, attempt: int = 1) -> RoundAttempted:
    return RoundAttempted(cell=CELL, round=round_, attempt=attempt, incumbent="start")


def cut(round_: int, attempt: int = 1) -> RoundInterrupted:
    return RoundInterrupted(cell=CELL, round=round_, attempt=attempt, reason="killed")


ZERO = round_zero(CELL, "start", {"time_us": 300.0})


def test_nothing_attempted() -> None:
    state = after()
    assert (state.round, state.open, state.incumbent) == (-1, False, None)
    assert next_attempt(state) == (0, 1)
    assert must_stop(plan_of(CELL), state) is None


def test_round_zero() -> None:
    state = after(*ZERO)
    assert (state.round, state.attempt, state.open) == (0, 1, False)
    assert (state.start, state.incumbent) == ("start", "start")
    assert state.signals == {"start": {"time_us": 300.0}}
    assert (state.floors, state.launches) == ({"start": 0.002}, {"start": "launches of start"})
    assert next_attempt(state) == (1, 1)


@pytest.mark.parametrize("cut_after", range(1, len(ZERO)))
def test_round_zero_is_open_until_its_noise_floor(cut_after: int) -> None:
    assert after(*ZERO[:cut_after]).open


def test_an_unfit_start_ends_the_cell() -> None:
    """The failed gate is the end of round 0: there is nothing to profile and nothing to try again."""
    made = KernelGenerated(
        cell=CELL, round=0, firing=None, generator="start", variant="start", source="start", parent=None
    )
    state = after(attempted(0), made, gated(CELL, 0, 1, "start", "wrong_result"))
    assert (state.open, must_stop(plan_of(CELL), state)) == (False, "start unfit")
    assert state.unfit.startswith("wrong_result: ")


def test_a_later_gate_of_the_starting_source_is_not_about_the_start() -> None:
    state = after(*ZERO, attempted(1), gated(CELL, 1, 1, "start", "timeout"))
    assert (state.open, state.unfit, must_stop(plan_of(CELL), state)) == (True, "", None)


def test_the_latest_profile_and_floor_of_a_source_count() -> None:
    state = after(*ZERO, profiled(CELL, 1, "start", "start", {"time_us": 290.0}), floor_of(CELL, 1, "start", 0.01))
    assert state.signals["start"] == {"time_us": 290.0}
    assert state.floors["start"] == 0.01


def test_interruptions() -> None:
    """An interrupted round is tried again; three in a row stop the cell, and a judged round starts the count anew."""
    plan = plan_of(CELL)
    state = after(*ZERO, attempted(1), cut(1))
    assert (state.open, state.interruptions, next_attempt(state)) == (False, 1, (1, 2))
    state = after(*ZERO, attempted(1), cut(1), attempted(1, 2))
    assert (state.open, state.interruptions, state.attempt) == (True, 1, 2)
    state = fold(fold(state, cut(1, 2)), attempted(1, 3))
    assert must_stop(plan, state) is None
    state = fold(state, cut(1, 3))
    assert (state.interruptions, must_stop(plan, state)) == (3, "interrupted too often")


def test_interruptions_of_two_rounds_do_not_add_up() -> None:
    world = World(
        {"start": {"x": 1.0}},
        lambda firing: Outcome("SLOWER", "other", cut_off=2 if firing.round < 3 else 0),
        {"start": context_of()},
    )
    _, state = simulate(plan_of(CELL, rules=TABLE, max_rounds=3), world)
    assert [(row.round, row.attempt) for row in state.rounds] == [(1, 3), (2, 3), (3, 1)]
    assert (state.interruptions, state.interrupted) == (0, 4)
    assert state.stopped is not None and state.stopped.reason == "rounds exhausted"


def test_an_interrupted_last_round_is_not_exhaustion() -> None:
    state = after(*ZERO, attempted(1))
    assert must_stop(plan_of(CELL, max_rounds=1), state) is None
    assert must_stop(plan_of(CELL, max_rounds=1), fold(state, cut(1))) is None


def test_events_of_other_cells_and_of_runs_change_nothing() -> None:
    state = after(*ZERO)
    other = cell_of(arm="off")
    for event in (*round_zero(other, "other", {"x": 1.0}), stop(other, "no rule fires"), stop(None, "plan completed")):
        assert fold(state, event) is state


def test_credit_goes_to_the_context_of_the_firing() -> None:
    """The rule fires on the scalar kernel; that its candidate has a dot matters to the next firing alone."""
    contexts = {"start": context_of(structure="no_dot"), "tiled": context_of(structure="dot")}
    world = World(
        {"start": {"x": 1.0}, "tiled": {"x": 1.0}},
        lambda firing: Outcome("FASTER", "tiled") if firing.round == 1 else Outcome("SLOWER", "other"),
        contexts,
    )
    _, state = simulate(plan_of(CELL, rules=TABLE, max_rounds=2), world)
    stream = "run1/toy/tf32-allowed/flags/on/1"
    assert evidence(state, "a", 1, contexts["start"]) == (1, 0, (f"{stream}/1.1",))
    assert evidence(state, "a", 1, contexts["tiled"]) == (0, 1, (f"{stream}/2.1",))
    assert evidence(state, "a", 1) == (1, 1, (f"{stream}/1.1", f"{stream}/2.1"))
    assert evidence(state, "a", 2) == evidence(state, "b", 1) == (0, 0, ())


def test_a_verdict_without_a_firing_is_a_damaged_ledger() -> None:
    world = World({"start": {"x": 1.0}}, lambda firing: Outcome("SAME"), {"start": context_of()})
    events, _ = simulate(plan_of(CELL, rules=TABLE, max_rounds=1), world)
    verdict = next(event for event in events if isinstance(event, RoundJudged))
    with pytest.raises(UnreadableLedger, match=r"round 1 credits firing '.*/on/1/1\.1'.*no such RuleFired"):
        fold(after(*ZERO), verdict)


@pytest.mark.parametrize("arm", ["", "ON", "on+", "on+tabu+tabu", "tabu", "off+memory"])
def test_unknown_arms(arm: str) -> None:
    with pytest.raises(BadInput, match=r"expected off, on, off\+tabu, on\+tabu or random"):
        arm_policy(arm)


def test_known_arms() -> None:
    read = {name: arm_policy(name) for name in ("off", "on", "off+tabu", "on+tabu")}
    assert [(arm.evolves, arm.tabu) for arm in read.values()] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]


VERDICTS = st.sampled_from(["FASTER", "SLOWER", "SAME", "AMBIGUOUS"])
OUTCOMES = st.builds(Outcome, VERDICTS, st.sampled_from(["k1", "k2", "k3"]), cut_off=st.integers(0, 2))
INERT = st.builds(Outcome, st.just("SAME"), st.just("twin"), inert=st.just(True))


@st.composite
def played(draw: st.DrawFn) -> tuple[str, list[Event]]:
    """A whole cell over two rules, three kernels and any outcomes."""
    arm = draw(st.sampled_from(["off", "on", "off+tabu", "on+tabu"]))
    script = draw(st.lists(OUTCOMES | INERT, min_size=12, max_size=12))
    xs = draw(st.lists(st.sampled_from([1.0, 5.0, 9.0]), min_size=4, max_size=4))
    names = ("start", "k1", "k2", "k3")
    structure = st.sampled_from(["dot", "no_dot"])
    world = World(
        {name: {"x": x} for name, x in zip(names, xs, strict=True)},
        lambda firing: script[firing.round - 1],
        {name: context_of(structure=draw(structure)) for name in names},
    )
    return arm, simulate(plan_of(cell_of(arm=arm), rules=TABLE), world)[0]


@settings(max_examples=60, deadline=None)
@given(played(), st.data())
def test_fold_may_be_continued_anywhere(cell: tuple[str, list[Event]], data: st.DataObject) -> None:
    """fold(a + b) = fold(b) from fold(a); the earlier state is untouched; and twice is the same."""
    arm, events = cell
    split = data.draw(st.integers(0, len(events)))
    states = [CellState(cell=cell_of(arm=arm))]
    for event in events:
        states.append(fold(states[-1], event))
    middle = states[split]
    before = repr(middle)
    resumed = middle
    for event in events[split:]:
        resumed = fold(resumed, event)
    assert resumed == states[-1]
    assert repr(middle) == before


@settings(max_examples=60, deadline=None)
@given(played())
def test_what_was_decided_follows_from_what_was_recorded(cell: tuple[str, list[Event]]) -> None:
    """Each RoundJudged is followed by just what `decide` says of the fold up to it; arms that are off decide nothing."""
    arm, events = cell
    plan = plan_of(cell_of(arm=arm), rules=TABLE)
    state = CellState(cell=plan.cell)
    for event, following in pairwise([*events, stop(None, "end")]):
        state = fold(state, event)
        if isinstance(event, RoundJudged):
            due = decide(plan, state)
            assert (due[0] if due else None) == (
                following if isinstance(following, RuleRetired | RulePromoted) else None
            )
    decided = [event for event in events if isinstance(event, RuleRetired | RulePromoted)]
    assert arm.startswith("on") or not decided
    verdicts = [event for event in events if isinstance(event, RoundJudged)]
    assert len(state.credited) == sum(event.verdict != "AMBIGUOUS" for event in verdicts)
    assert len({(event.rule, event.context) for event in decided if isinstance(event, RuleRetired)}) == len(
        [event for event in decided if isinstance(event, RuleRetired)]
    )


def test_asking_without_a_profile_lets_every_rule_abstain() -> None:
    found = ask(plan_of(CELL, rules=TABLE), CellState(cell=CELL), context_of())
    assert found.fired is None
    assert [entry.rule for entry in found.abstained] == ["a", "b"]
