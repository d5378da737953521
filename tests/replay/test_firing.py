"""Which rule fires, against an adversary who writes tables, signals, chips and outcomes: what must hold on both sides whatever he writes."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.events.model import (
    Chip,
    Clause,
    Context,
    Event,
    Gain,
    Guard,
    Policy,
    RoundJudged,
    Rule,
    RuleFired,
    RuleRetired,
    Verdict,
    cell_stream,
)
from gpusolver.projections.asking import ask
from gpusolver.projections.cell import CellState, fold
from gpusolver.projections.cell_plan import CellPlan
from gpusolver.projections.evolution import evidence
from gpusolver.projections.matcher import standing_block
from gpusolver.projections.runs import fold as fold_runs
from gpusolver.projections.worth import Record, binary_log, worth
from gpusolver.replay import asking, grammar, matching
from gpusolver.replay import worth as theirs
from gpusolver.replay.findings import Findings
from gpusolver.replay.state import State

from ..projections.support import (
    A100,
    CREDITS,
    H200,
    RTX3090,
    T4,
    Outcome,
    World,
    cell_of,
    context_of,
    firings,
    judged,
    plan_of,
    rule,
    run_stream,
    simulate,
)

PATIENCE = 4
NEW = Policy(credible_num=19, credible_den=20, patience=PATIENCE, order="value")
OLD = Policy(credible_num=19, credible_den=20)
SOURCES = ("start", "k1", "k2")
SIGNALS = ("time_us", "load_eff", "occupancy", "share")
BARE = Chip(name="no data sheet", compute_capability="9.9", peaks_tflops={}, dram_gbps=0.0)
ZERO = Chip(name="zeros", compute_capability="9.9", peaks_tflops={"fp32": 0.0, "tf32": 0.0}, dram_gbps=1.0)
EXTREMES = (0.0, -0.0, 5e-324, sys.float_info.max, -sys.float_info.max, 0.5, math.nextafter(0.5, 1), 1.0, 64.0, -3.0)

numbers = st.one_of(st.sampled_from(EXTREMES), st.floats(allow_nan=False, allow_infinity=False))
vectors = st.dictionaries(st.sampled_from(SIGNALS), numbers)
clauses = st.builds(
    Clause, signal=st.sampled_from(SIGNALS), op=st.sampled_from(("<", "<=", ">", ">=", "==")), threshold=numbers
)
caps = st.floats(-2, 100)
gains = st.one_of(
    st.builds(Gain, form=st.just("constant"), cap=caps),
    st.builds(Gain, form=st.sampled_from(("signal", "inverse_signal")), cap=caps, signal=st.sampled_from(SIGNALS)),
    st.builds(Gain, form=st.just("peak_ratio"), cap=caps, over=st.just("tf32"), under=st.just("fp32")),
    st.builds(Gain, form=st.just("amdahl"), cap=caps, signal=st.sampled_from(SIGNALS), share=st.sampled_from(SIGNALS)),
)
guards = st.builds(Guard, over=st.just("tf32"), under=st.just("fp32"), at_least=st.sampled_from((1.0, 1.5, 9.0)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rule, ...]:
    """Up to six rules that overlap and contradict one another; positions as drawn, also the same ones."""
    made = []
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True)):
        stop = draw(st.integers(0, 9)) == 0
        made.append(
            rule(
                name,
                tier=draw(st.integers(0, 2)),
                position=draw(st.integers(1, 4)),
                stop=stop,
                prescription=None if stop else draw(st.sampled_from(("p", "q", "lacking"))),
                clauses=tuple(draw(st.lists(clauses, min_size=1, max_size=3))),
                guards=tuple(draw(st.lists(guards, max_size=1))),
                contracts=draw(st.sampled_from(((), ("tf32-allowed",), ("fp32-strict",)))),
                gain=draw(gains),
            )
        )
    return tuple(made)


verdicts = st.sampled_from(("FASTER", "SLOWER", "SAME", "AMBIGUOUS"))


class Play:
    """One cell under an adversary's table, chip, signals by source and outcomes by round, on the writing side."""

    def __init__(
        self,
        table: tuple[Rule, ...],
        chip: Chip,
        signals: Mapping[str, Mapping[str, float]],
        outcomes: list[tuple[Verdict, bool]],
        arm: str = "on",
        policy: Policy = NEW,
        max_rounds: int = 30,
    ) -> None:
        plan = plan_of(cell_of(arm=arm), chip, table, max_rounds)
        self.plan: CellPlan = replace(
            plan, policy=policy, problem=replace(plan.problem, prescriptions=("p", "q")), statistics=plan.statistics
        )
        self.contexts = {s: context_of(chip, structure="dot" if s == "k1" else "no_dot") for s in SOURCES}
        self.signals = {source: dict(signals.get(source, {})) for source in SOURCES}

        def outcome(firing: RuleFired) -> Outcome:
            verdict, inert = outcomes[(firing.round - 1) % len(outcomes)]
            place = SOURCES.index(firing.incumbent)
            return Outcome(verdict, SOURCES[(place + 1) % len(SOURCES)], inert=inert and verdict == "SAME")

        self.events, self.state = simulate(self.plan, World(self.signals, outcome, self.contexts))

    def rule(self, name: str) -> Rule:
        return next(entry for entry in self.plan.rules if entry.name == name)

    def live(self, source: str) -> set[str]:
        """Rules whose clauses hold on a source, by the definition, and that nothing standing blocks."""
        seen, plan = self.signals[source], self.plan
        return {
            entry.name
            for entry in plan.rules
            if all(c.signal in seen and matching.COMPARE[c.op](seen[c.signal], c.threshold) for c in entry.clauses)
            and standing_block(entry, plan.chip, plan.cell.contract, plan.problem.prescriptions) is None
        }


@st.composite
def plays(draw: st.DrawFn, arms: tuple[str, ...] = ("on",)) -> Play:
    return Play(
        draw(tables()),
        draw(st.sampled_from((A100, H200, RTX3090, T4, BARE, ZERO))),
        {source: {str(name): x for name, x in draw(vectors).items()} for source in SOURCES},
        draw(st.lists(st.tuples(verdicts, st.booleans()), min_size=1, max_size=12)),
        draw(st.sampled_from(arms)),
    )


def only_fired(events: list[Event]) -> list[RuleFired]:
    return [event for event in events if isinstance(event, RuleFired)]


settings.register_profile("firing", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEW = settings.get_profile("firing")
ALL_ARMS = ("off", "on", "off+tabu", "on+tabu")


@FEW
@given(plays(ALL_ARMS))
def test_one_rule_a_round_and_every_clause_of_it_seen_to_hold(play: Play) -> None:
    fired = only_fired(play.events)
    rounds = [event.round for event in fired]
    assert rounds == sorted(set(rounds))
    for event in fired:
        seen = play.signals[event.incumbent]
        asked = play.rule(event.rule)
        assert {c.signal for c in asked.clauses} <= set(seen)
        assert [(c.signal, c.op, c.threshold) for c in event.clauses] == [
            (c.signal, c.op, c.threshold) for c in asked.clauses
        ]
        assert all(matching.COMPARE[c.op](seen[c.signal], c.threshold) for c in event.clauses)
        assert event.rule in play.live(event.incumbent)


@FEW
@given(plays((*ALL_ARMS, "random")), st.randoms(use_true_random=False))
def test_the_order_of_the_file_changes_nothing(play: Play, random: object) -> None:
    """Every other position, and the same events: and so is the second time as the first."""
    table = list(play.plan.rules)
    random.shuffle(table)  # type: ignore[attr-defined]
    moved = replace(play.plan, rules=tuple(replace(entry, position=i) for i, entry in enumerate(table, 1)))
    by_round = {event.round: event for event in play.events if isinstance(event, RoundJudged)}

    def again(firing: RuleFired) -> Outcome:
        found = by_round[firing.round]
        return Outcome(found.verdict, found.candidate, inert=found.inert)

    events, _ = simulate(moved, World(play.signals, again, play.contexts))
    assert events == play.events


@FEW
@given(plays(("on", "on+tabu")))
def test_no_rule_starves_another(play: Play) -> None:
    """On one incumbent a rule has at most PATIENCE rounds; where the cell runs dry, every live rule had a round or was retired."""
    judged_rounds = [event for event in play.events if isinstance(event, RoundJudged)]
    for _, stretch in groupby(judged_rounds, key=lambda event: event.incumbent):
        names = [event.rule for event in stretch if event.verdict != "FASTER"]
        assert all(names.count(name) <= PATIENCE for name in names)
    assert play.state.stopped is not None
    if play.state.stopped.reason == "no rule fires":
        at = play.state.incumbent or ""
        reached = {event.rule for event in judged_rounds if event.incumbent == at}
        silenced = {name for name, _, context in play.state.retired if context == play.contexts[at]}
        assert play.live(at) <= reached | silenced
    assert len(judged_rounds) <= PATIENCE * len(play.plan.rules) or any(e.verdict == "FASTER" for e in judged_rounds)


@FEW
@given(plays(("on", "on+tabu")))
def test_what_is_retired_in_a_context_never_fires_in_it(play: Play) -> None:
    silenced: set[tuple[str, int, Context]] = set()
    for event in play.events:
        if isinstance(event, RuleFired):
            assert (event.rule, event.rule_version, event.context) not in silenced
        if isinstance(event, RuleRetired):
            silenced.add((event.rule, event.rule_version, event.context))


@FEW
@given(plays(("on",)), st.data())
def test_a_neutral_end_moves_no_confidence(play: Play, data: st.DataObject) -> None:
    """After any prefix, one more neutral verdict leaves every tally, in every context, as it was."""
    state, states = CellState(cell=play.plan.cell), list[CellState]()
    for event in play.events:
        state = fold(state, event)
        if state.fired and state.stopped is None:
            states.append(state)
    if not states:
        return
    before = data.draw(st.sampled_from(states))
    firing = before.fired[before.last_firing or ""]
    after = fold(before, judged(play.plan.cell, firing, 1, Outcome("AMBIGUOUS", "k2")))
    assert CREDITS["AMBIGUOUS"] == "neutral"
    for entry in play.plan.rules:
        for context in (None, *play.contexts.values()):
            assert evidence(before, entry.name, entry.version, context) == evidence(
                after, entry.name, entry.version, context
            )
    assert (after.retired, after.promoted) == (before.retired, before.promoted)


@FEW
@given(plays(("on", "on+tabu")), plays(("on", "on+tabu")))
def test_outcomes_of_one_problem_cannot_reach_another(play: Play, hostile: Play) -> None:
    """The adversary's cell before, after and between the events of another: that one asks and decides as if it were alone."""
    other = replace(hostile.plan.cell, problem="hostile")
    theirs_ = [(cell_stream("run1", other), replace(e, cell=other)) for e in hostile.events if hasattr(e, "cell")]
    own = [(cell_stream("run1", play.plan.cell), event) for event in play.events]
    head = [("run1", event) for event in run_stream((play.plan.cell, other), play.plan.rules)]
    half = len(own) // 2
    alone = fold_runs([*head, *own])["run1"].cells[cell_stream("run1", play.plan.cell)]
    for mixed in ([*theirs_, *own], [*own, *theirs_], [*own[:half], *theirs_, *own[half:]]):
        assert fold_runs([*head, *mixed])["run1"].cells[cell_stream("run1", play.plan.cell)] == alone


@FEW
@given(plays((*ALL_ARMS, "random")), st.sampled_from((NEW, OLD, replace(NEW, patience=1), replace(OLD, patience=2))))
def test_both_sides_answer_alike_after_every_round(play: Play, policy: Policy) -> None:
    plan = replace(play.plan, policy=policy)
    ours = CellState(cell=plan.cell)
    for number, event in enumerate(play.events, start=1):
        ours = fold(ours, event)
        if ours.open or ours.incumbent is None or ours.stopped is not None:
            continue
        context = play.contexts[ours.incumbent]
        found = ask(plan, ours, context)
        due = asking.ask(asked_of(plan), verifier_state(play.events[:number]), context)
        assert (found.fired, found.clauses, found.abstained, found.blocked) == (
            due.rule,
            due.clauses,
            due.abstained,
            due.blocked,
        )
        if found.fired is not None:
            assert found.predicted_gain == due.gain


def asked_of(plan: CellPlan) -> asking.Asked:
    return asking.Asked(
        table=plan.rules,
        policy=plan.policy,
        evolves=plan.cell.arm.startswith("on"),
        tabu=plan.cell.arm.endswith("+tabu"),
        chip=plan.chip,
        prescriptions=plan.problem.prescriptions,
        blocks=plan.statistics.blocks,
        draw=f"{plan.seed}:{cell_stream(plan.run, plan.cell)}" if plan.cell.arm == "random" else None,
    )


def verifier_state(events: list[Event]) -> State:
    """The verifier's own fold, over the rounds that its grammar finds."""
    state = State()
    for round_ in grammar.parse(list(enumerate(events, 1)), Findings()).rounds:
        if round_.attempted.round == 0:
            state.incumbent = round_.attempted.incumbent
        state.remember(round_)
        if round_.judged is None or round_.fired is None:
            continue
        state.account(round_.judged)
        state.incumbent = round_.judged.next_incumbent
        key = (round_.judged.rule, round_.judged.rule_version)
        state.evidence.credit(key, round_.fired.context, round_.judged.credit, round_.fired.firing)
        if round_.retired is not None:
            state.evidence.retired.add((key, round_.retired.context))
        if round_.promoted is not None:
            state.evidence.promoted.add(key)
    return state


# --- known answers ----------------------------------------------------------------------------------------------------

FIRST = rule("first", ("load_eff", "<", 0.7), position=1, prescription="p")
SECOND = rule("second", ("load_eff", "<", 0.7), position=2, prescription="q", gain=Gain(form="constant", cap=1.5))
SEEN = {source: {"load_eff": 0.1, "time_us": 100.0} for source in SOURCES}


def test_a_rule_whose_kernels_always_fail_used_to_starve_the_next() -> None:
    """Neutral for ever: without a patience the second rule was never asked, which is why there is one."""
    failing: list[tuple[Verdict, bool]] = [("AMBIGUOUS", False)]
    assert firings(Play((FIRST, SECOND), A100, SEEN, failing, policy=OLD, max_rounds=12).events) == ["first"] * 12
    mended = Play((FIRST, SECOND), A100, SEEN, failing, policy=NEW, max_rounds=12)
    assert firings(mended.events) == ["first"] * 4 + ["second"] * 4
    assert mended.state.stopped is not None and mended.state.stopped.reason == "no rule fires"
    assert {entry.reason for event in only_fired(mended.events)[4:] for entry in event.blocked} == {"spent"}
    assert not mended.state.retired and not mended.state.credited


def test_the_position_in_the_file_used_to_decide() -> None:
    turned = (replace(FIRST, position=2), replace(SECOND, position=1))
    same: list[tuple[Verdict, bool]] = [("SAME", False)]
    assert firings(Play(turned, A100, SEEN, same, policy=OLD, max_rounds=1).events) == ["second"]
    assert firings(Play(turned, A100, SEEN, same, policy=NEW, max_rounds=1).events) == ["first"]


def test_failures_let_the_next_rule_come_first() -> None:
    """2x and 1.5x: log2 is 1 and 0.585. After one failure 1/3 * 1 = 0.333 stands over 1/2 * 0.585 = 0.292, after two 1/4 does not;
    then one failure takes `second` to 1/3 * 0.585 = 0.195, under the 1/4 and the 1/5 of `first`, whose fourth failure retires it.
    """
    same: list[tuple[Verdict, bool]] = [("SAME", False)]
    played = Play((FIRST, SECOND), A100, SEEN, same, max_rounds=6)
    assert firings(played.events) == ["first", "first", "second", "first", "first", "second"]


@pytest.mark.parametrize("log", [binary_log, theirs.log_gain])
def test_the_logarithm_of_both_sides_by_hand(log: object) -> None:
    """log2 of 1, 2, 4, 1.5 and of the ends of the range, in units of 2**-20; nothing below 1 has one."""
    assert callable(log)
    unit = 2**20
    assert [log(g) for g in (-3.0, 0.0, 5e-324, 1.0, 2.0, 4.0)] == [0, 0, 0, 0, unit, 2 * unit]
    assert log(1.5) == math.floor(math.log2(1.5) * unit)
    assert log(sys.float_info.max) == 1024 * unit - 1
    assert log(math.nextafter(1.0, 2.0)) == 0


@given(st.floats(1, sys.float_info.max), st.integers(0, 9), st.integers(0, 9), st.lists(st.integers(0, 10**9)))
def test_the_worth_of_both_sides(gain: float, successes: int, failures: int, costs: list[int]) -> None:
    record = Record(successes=successes, failures=failures, costs_ns=tuple(costs))
    assert worth(gain, record, 1000) == theirs.value(gain, successes, failures, costs, 1000)
    assert abs(binary_log(gain) / 2**20 - math.log2(gain)) < 2e-6


def test_the_random_arm_draws_by_the_registered_seed() -> None:
    """By hand: SHA-256 of `<seed>:<stream>:<round>:<name>`, the smaller first; a clause that does not hold is told, and does not matter."""
    high = {source: {"load_eff": 0.9, "time_us": 100.0} for source in SOURCES}
    played = Play((FIRST, SECOND), A100, high, [("SAME", False)], arm="random", max_rounds=8)
    place = "0:run1/toy/tf32-allowed/flags/random/1"
    due = [
        min(("first", "second"), key=lambda name: hashlib.sha256(f"{place}:{round_}:{name}".encode()).hexdigest())
        for round_ in range(1, 9)
    ]
    assert firings(played.events) == due and set(due) == {"first", "second"}
    assert {clause.value for event in only_fired(played.events) for clause in event.clauses} == {0.9}
    assert not played.state.retired and not played.state.promoted


def test_cheap_rounds_raise_the_worth() -> None:
    """s = 1, f = 0: 2/3. L = 2^20. Prior 1000 ns and one round of 200 ns: a mean of 600."""
    found = worth(2.0, Record(successes=1, costs_ns=(200,)), 1000)
    assert found * 600 * 3 == 2 * 2**20
