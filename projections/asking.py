"""What a cell does next: the rule table's answer on its incumbent, the rules still alive, the next attempt, the stop. Never weighs evidence itself."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from msgspec import UNSET, UnsetType

from ..events.model import Context, Rule, cell_stream
from .cell import CellState
from .cell_plan import CellPlan, arm_policy
from .evolution import promoted, silenced, weighed
from .matcher import Match, Silenced, Situation, draw, in_order, match, newest, predicted_gain, standing_block
from .worth import Record, by_worth, worth

INTERRUPTIONS_ALLOWED = 3


def must_stop(plan: CellPlan, state: CellState) -> str | None:
    """Why the cell may not attempt another round whatever the table says, in the words of RunStopped, or None."""
    if state.round == 0 and state.start is not None and state.gates.get(state.start, "passed") != "passed":
        return "start unfit"
    if state.interruptions >= INTERRUPTIONS_ALLOWED:
        return "interrupted too often"
    if state.round >= plan.max_rounds and not state.open and not state.interruptions:
        return "rounds exhausted"
    return None


def next_attempt(state: CellState) -> tuple[int, int]:
    """Round and attempt that come next: the interrupted round again, else the next round; an open attempt must end first."""
    return (state.round, state.attempt + 1) if state.interruptions else (state.round + 1, 1)


def ask(plan: CellPlan, state: CellState, context: Context) -> Match:
    """The rule table's answer on the incumbent's latest signals; `context` is the incumbent's (replay/FORMAT.md 6.5)."""
    arm = arm_policy(plan.cell.arm)
    signals = _signals(state)
    tabu = {rule for rule, incumbent in state.inert if incumbent == state.incumbent} if arm.tabu else set()
    situation = Situation(
        chip=plan.chip,
        contract=plan.cell.contract,
        context=context,
        prescriptions=tuple(p for p in plan.problem.prescriptions if (p, state.incumbent) not in state.unserved),
        evolves=arm.evolves,
        retired=silenced(plan, state),
        tabu=tabu,
        spent=_spent(plan, state),
    )
    if arm.random:
        drawn = f"{plan.seed}:{cell_stream(plan.run, plan.cell)}:{len(state.rounds) + 1}"
        return draw(newest(plan.rules), drawn, signals, situation)
    return match(_asked(plan, state), signals, situation)


def live_rules(plan: CellPlan, state: CellState, context: Context) -> tuple[Rule, ...]:
    """The rules that may still fire on a kernel of `context`: of each name the highest version, without those retired there and
    those that contract, guard or a lacking variant blocks in this cell.

    Only these need to be measured for, so that a retirement makes the next profile cheaper. Arms that do not evolve retire none.
    """
    retired = silenced(plan, state) if arm_policy(plan.cell.arm).evolves else frozenset[Silenced]()
    return tuple(
        rule
        for rule in in_order(plan.rules, promoted(plan, state))
        if (rule.name, rule.version, context) not in retired
        and standing_block(rule, plan.chip, plan.cell.contract, plan.problem.prescriptions) is None
    )


def _asked(plan: CellPlan, state: CellState) -> tuple[Rule, ...]:
    """The rules in the order that the registered policy asks them in."""
    if plan.policy.order == UNSET:
        return in_order(plan.rules, promoted(plan, state))
    signals = _signals(state)
    prior = 4 * plan.statistics.blocks * max(1, _ns(signals))
    evolves = arm_policy(plan.cell.arm).evolves
    return by_worth(
        (
            rule,
            worth(
                predicted_gain(rule.gain, signals, plan.chip),
                _record(plan, state, rule) if evolves else Record(),
                prior,
            ),
        )
        for rule in newest(plan.rules)
    )


def _record(plan: CellPlan, state: CellState, rule: Rule) -> Record:
    """What the cell has seen of a rule, over all contexts, beside what was carried into it."""
    successes, failures, _ = weighed(plan, state, rule.name, rule.version)
    costs = tuple(
        2 * judged.interval.blocks * (_time(state, judged.incumbent) + _time(state, judged.candidate))
        for judged in state.rounds
        if (judged.rule, judged.rule_version) == (rule.name, rule.version) and judged.interval is not None
    )
    return Record(successes=successes, failures=failures, costs_ns=costs)


def _spent(plan: CellPlan, state: CellState) -> set[str]:
    """Rules whose rounds on the incumbent, none of them FASTER, have reached the registered patience."""
    if isinstance(plan.policy.patience, UnsetType):
        return set()
    rounds = Counter(
        judged.rule for judged in state.rounds if judged.incumbent == state.incumbent and judged.verdict != "FASTER"
    )
    return {rule for rule, times in rounds.items() if times >= plan.policy.patience}


def _signals(state: CellState) -> dict[str, float]:
    return {} if state.incumbent is None else state.signals.get(state.incumbent, {})


def _time(state: CellState, source: str) -> int:
    return _ns(state.signals.get(source, {}))


def _ns(signals: dict[str, float]) -> int:
    """Whole nanoseconds, as the samples were: `time_us` is such a number over 1000. Exact, so that no value overflows."""
    return max(0, round(Fraction(signals.get("time_us", 0.0)) * 1000))
