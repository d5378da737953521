"""Whole cells on made-up signals: what evolving, remembering and promoting change, and what they must not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gpusolver.events.model import Blocked, Context, Event, RuleFired, RulePromoted, RuleRetired
from gpusolver.projections.asking import live_rules
from gpusolver.projections.cell import CellState
from gpusolver.projections.evolution import evidence

from .support import A100, T4, Outcome, World, cell_of, context_of, firings, plan_of, rule, simulate


def kinds(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def ended(state: CellState) -> tuple[str, str | None, int]:
    """Reason, rule and last round."""
    assert state.stopped is not None
    return state.stopped.reason, state.stopped.rule, state.round


# --- T4: made-up signals of an fp32 kernel with many registers, whose one applicable rule changes nothing ---------------

T4_SIGNALS = {"weight": 1.0, "dtype_bits": 32.0, "tensor_active": 0.0, "occupancy": 0.25, "registers": 128.0}


def play_t4(arm: str) -> tuple[list[Event], CellState]:
    world = World({"start": T4_SIGNALS}, lambda firing: Outcome("SAME", "capped"), {"start": context_of(T4)})
    return simulate(plan_of(cell_of("fp32", arm), T4, max_rounds=8), world)


def test_t4_on_retires_reg_pressure_after_the_fourth_flat_round() -> None:
    """Rounds 1 to 4 misfire; in round 5 the guard still blocks TF32 and the retirement the rest, so there is no round 5 to 8."""
    events, state = play_t4("on")
    assert firings(events) == ["reg_pressure"] * 4
    (retired,) = kinds(events, RuleRetired)
    assert isinstance(retired, RuleRetired)
    assert (retired.rule, retired.rule_version, retired.context) == ("reg_pressure", 1, context_of(T4))
    assert (retired.successes, retired.failures, retired.confidence) == (0, 4, 1 / 6)
    assert retired.firings == tuple(f"run1/fp32/tf32-allowed/flags/on/1/{round_}.1" for round_ in (1, 2, 3, 4))
    assert ended(state) == ("no rule fires", None, 4)


def test_t4_off_never_learns() -> None:
    """Rounds 5 to 8 are reg_pressure again, and only the registered number of rounds ends it."""
    events, state = play_t4("off")
    assert firings(events) == ["reg_pressure"] * 8
    assert not kinds(events, RuleRetired)
    assert ended(state) == ("rounds exhausted", None, 8)


@pytest.mark.parametrize("arm", ["on", "off"])
def test_t4_guard_blocks_tf32_in_every_firing(arm: str) -> None:
    events, _ = play_t4(arm)
    for event in kinds(events, RuleFired):
        assert isinstance(event, RuleFired)
        assert event.blocked == (Blocked(rule="fp32_no_tensorcore", reason="guard"),)
        assert event.predicted_gain == 2.0  # 1 / 0.25 is beyond the cap


# --- sigmoid on an A100: TF32 has nothing to multiply, fusing helps; made-up signals -----------------------------------

EAGER = {
    "weight": 1.0,
    "dtype_bits": 32.0,
    "tensor_active": 0.0,
    "useful_bw_frac": 0.4,
    "bw_frac": 0.8,
    "traffic_excess": 2.0,
    "kernel_count": 2.0,
    "mean_kernel_us": 40.0,
}
FUSED = {**EAGER, "useful_bw_frac": 0.9, "traffic_excess": 1.0, "kernel_count": 1.0}


def play_sigmoid(arm: str, inert: bool = False) -> tuple[list[Event], CellState]:
    def outcome(firing: RuleFired) -> Outcome:
        if firing.rule == "memory_bound_fusable":
            return Outcome("FASTER", "fused")
        return Outcome("SAME", "tf32", inert=inert)

    eager = context_of(A100, language="library", structure="library")
    world = World({"start": EAGER, "fused": FUSED}, outcome, {"start": eager, "fused": context_of(A100)})
    return simulate(plan_of(cell_of("sigmoid", arm)), world)


def test_sigmoid_on_gets_past_the_misfiring_rule() -> None:
    events, state = play_sigmoid("on")
    assert firings(events) == ["fp32_no_tensorcore"] * 4 + ["memory_bound_fusable", "memory_saturated"]
    (retired,) = kinds(events, RuleRetired)
    assert isinstance(retired, RuleRetired) and retired.rule == "fp32_no_tensorcore"
    fifth = kinds(events, RuleFired)[4]
    assert isinstance(fifth, RuleFired)
    assert fifth.blocked == (Blocked(rule="fp32_no_tensorcore", reason="retired"),)
    assert fifth.predicted_gain == 2.0  # traffic_excess
    assert state.incumbent == "fused"
    assert ended(state) == ("stop rule", "memory_saturated", 5)


def test_sigmoid_off_misfires_to_the_last_round() -> None:
    events, state = play_sigmoid("off")
    assert firings(events) == ["fp32_no_tensorcore"] * 12
    assert (state.incumbent, ended(state)) == ("start", ("rounds exhausted", None, 12))


def test_sigmoid_memory_alone_saves_three_of_the_four_misfires() -> None:
    """With tabu one inert firing is enough, evolving or not: what the tabu arms are there to show."""
    for arm in ("off+tabu", "on+tabu"):
        events, state = play_sigmoid(arm, inert=True)
        assert firings(events) == ["fp32_no_tensorcore", "memory_bound_fusable", "memory_saturated"]
        assert not kinds(events, RuleRetired)
        assert ended(state) == ("stop rule", "memory_saturated", 2)


def test_tabu_is_about_inert_candidates_only() -> None:
    """A candidate that was measured to be no faster is not inert: the rule fires again."""
    events, _ = play_sigmoid("off+tabu", inert=False)
    assert firings(events) == ["fp32_no_tensorcore"] * 12


# --- a change of context, tabu on one incumbent --------------------------------------------------------------------------

SCALAR = {"weight": 1.0, "dtype_bits": 32.0, "tensor_active": 0.0, "load_eff": 0.5}


def play_matmul(arm: str, before: Context, after: Context) -> tuple[list[Event], CellState]:
    """TF32 is inert on the start and a success on the tiled kernel, which only `uncoalesced` leads to."""

    def outcome(firing: RuleFired) -> Outcome:
        if firing.rule == "uncoalesced":
            return Outcome("FASTER", "tiled")
        return Outcome("SAME", "flag", inert=True) if firing.incumbent == "start" else Outcome("FASTER", "tiled tf32")

    done = {"weight": 0.01}
    world = World(
        {"start": SCALAR, "tiled": SCALAR, "tiled tf32": done},
        outcome,
        {"start": before, "tiled": after, "tiled tf32": after},
    )
    return simulate(plan_of(cell_of("matmul", arm)), world)


def test_a_new_context_asks_the_retired_rule_again() -> None:
    before, after = context_of(language="library", structure="library"), context_of(structure="dot")
    events, state = play_matmul("on", before, after)
    assert firings(events) == [
        *["fp32_no_tensorcore"] * 4,
        "uncoalesced",
        "fp32_no_tensorcore",
        "below_weight_gate",
    ]
    assert state.retired == {("fp32_no_tensorcore", 1, before)}
    assert evidence(state, "fp32_no_tensorcore", 1, after)[:2] == (1, 0)
    assert state.incumbent == "tiled tf32"


def test_no_dot_to_dot_is_a_new_context_too_and_the_same_context_is_not() -> None:
    before, after = context_of(structure="no_dot"), context_of(structure="dot")
    assert firings(play_matmul("on", before, after)[0])[5] == "fp32_no_tensorcore"
    assert firings(play_matmul("on", before, before)[0])[5] == "uncoalesced"


def test_tabu_skips_the_inert_firing_on_the_same_incumbent_only() -> None:
    context = context_of()
    events, state = play_matmul("off+tabu", context, context)
    assert firings(events) == ["fp32_no_tensorcore", "uncoalesced", "fp32_no_tensorcore", "below_weight_gate"]
    second = kinds(events, RuleFired)[1]
    assert isinstance(second, RuleFired)
    assert second.blocked == (Blocked(rule="fp32_no_tensorcore", reason="tabu"),)
    assert state.inert == {("fp32_no_tensorcore", "start")}


# --- promotion -------------------------------------------------------------------------------------------------------------

STEPS = ("start", "k1", "k2", "k3", "k4", "k5")
LADDER = (
    rule("gate", ("done", "==", 1.0), tier=0, position=9, stop=True),
    rule("first", ("late", "==", 1.0), position=1),
    rule("second", ("late", ">=", 0.0), position=2),
)


def play_ladder(arm: str) -> tuple[list[Event], CellState]:
    """`second` succeeds from kernel to kernel; from k4 on the clauses of `first` hold as well; k5 is done."""
    signals = {name: {"late": float(name in ("k4", "k5")), "done": float(name == "k5")} for name in STEPS}
    contexts = {name: context_of(structure=("dot", "no_dot")[index % 2]) for index, name in enumerate(STEPS)}
    world = World(signals, lambda firing: Outcome("FASTER", STEPS[STEPS.index(firing.incumbent) + 1]), contexts)
    return simulate(plan_of(cell_of(arm=arm), rules=LADDER), world)


def test_promotion_moves_a_rule_to_the_front_of_its_tier() -> None:
    """Four straight successes, pooled over two contexts; after the fifth the stop of tier 0 is still asked first."""
    events, state = play_ladder("on")
    assert firings(events) == ["second"] * 5 + ["gate"]
    (promoted,) = kinds(events, RulePromoted)
    assert isinstance(promoted, RulePromoted)
    assert (promoted.rule, promoted.successes, promoted.failures, promoted.confidence) == ("second", 4, 0, 5 / 6)
    assert promoted.firings == tuple(f"run1/toy/tf32-allowed/flags/on/1/{round_}.1" for round_ in (1, 2, 3, 4))
    assert events.index(promoted) < events.index(kinds(events, RuleFired)[4])
    assert ended(state) == ("stop rule", "gate", 5)


def test_without_promotion_the_position_decides() -> None:
    events, _ = play_ladder("off")
    assert firings(events) == ["second"] * 4 + ["first", "gate"]
    assert not kinds(events, RulePromoted)


# --- neutral ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ["on", "off"])
def test_neutral_ends_move_nothing(arm: str) -> None:
    """Twelve ambiguous rounds, each cut off twice before: on the record, and no evidence of anything."""
    world = World({"start": T4_SIGNALS}, lambda _: Outcome("AMBIGUOUS", "capped", cut_off=2), {"start": context_of(T4)})
    events, state = simulate(plan_of(cell_of(arm=arm), T4), world)
    assert firings(events) == ["reg_pressure"] * 12
    assert evidence(state, "reg_pressure", 1) == (0, 0, ())
    assert (state.interrupted, state.retired, state.promoted) == (24, frozenset(), frozenset())


def test_neutral_ends_between_failures_do_not_reset_them() -> None:
    def outcome(firing: RuleFired) -> Outcome:
        return Outcome("SLOWER" if firing.round % 2 else "AMBIGUOUS", "capped")

    world = World({"start": T4_SIGNALS}, outcome, {"start": context_of(T4)})
    events, _ = simulate(plan_of(cell_of(), T4), world)
    (retired,) = kinds(events, RuleRetired)
    assert isinstance(retired, RuleRetired)
    assert [firing.rsplit("/", 1)[1] for firing in retired.firings] == ["1.1", "3.1", "5.1", "7.1"]


def test_a_success_in_between_takes_six_failures() -> None:
    """One success: (1, 5) is 120 of 128, (1, 6) is 247 of 256."""
    rounds = iter([Outcome("FASTER", "k1"), *[Outcome("SLOWER", "k2")] * 11])
    signals = {name: T4_SIGNALS for name in ("start", "k1")}
    world = World(signals, lambda _: next(rounds), {name: context_of(T4) for name in signals})
    events, _ = simulate(plan_of(cell_of(), T4), world)
    (retired,) = kinds(events, RuleRetired)
    assert isinstance(retired, RuleRetired)
    assert (retired.successes, retired.failures, retired.confidence) == (1, 6, 2 / 9)
    assert firings(events) == ["reg_pressure"] * 7


def test_what_was_retired_in_a_context_is_no_longer_measured_for_there() -> None:
    """Of each name the highest version, in the order of asking; arms that do not evolve keep every rule."""
    table = (rule("b", position=2), rule("a", version=1), rule("a", version=2), rule("gate", tier=0, stop=True))
    here, elsewhere = context_of(), context_of(structure="dot")
    silenced = frozenset({("a", 2, here), ("b", 1, elsewhere), ("gate", 1, here)})

    def live(
        arm: str, context: Context, retired: frozenset[tuple[str, int, Context]] = silenced
    ) -> list[tuple[str, int]]:
        plan = plan_of(cell_of(arm=arm), rules=table)
        state = replace(CellState(cell=plan.cell), retired=retired)
        return [(entry.name, entry.version) for entry in live_rules(plan, state, context)]

    whole = [("gate", 1), ("a", 2), ("b", 1)]
    assert live("on", here) == [("b", 1)]
    assert live("on+tabu", elsewhere) == [("gate", 1), ("a", 2)]
    assert (
        live("on", here, frozenset({("a", 1, here)})) == whole
    )  # an older version's retirement says nothing of the newer
    assert live("off", here) == live("off+tabu", here) == live("on", context_of(T4)) == whole
