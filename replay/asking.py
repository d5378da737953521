"""Which rule is due on the incumbent of a cell, under a policy: order, obstacles, answer (FORMAT.md 6.6). Never judges an event."""

from __future__ import annotations

from fractions import Fraction

import msgspec
from msgspec import UnsetType

from ..events.model import Chip, Context, Policy, Rule
from .matching import Decision, Question, drawn, first, highest, match, predicted_gain
from .state import State
from .worth import by_value, value


class Asked(msgspec.Struct, frozen=True):
    """What does not change within a cell: table, policy, whether the arm evolves and remembers, chip, prescriptions, full blocks.

    `draw` is the seed and the stream of a cell of the arm `random`, joined by a colon; None in every other.
    """

    table: tuple[Rule, ...]
    policy: Policy
    evolves: bool
    tabu: bool
    chip: Chip
    prescriptions: tuple[str, ...]
    blocks: int
    draw: str | None = None


def ask(asked: Asked, state: State, context: Context) -> Decision:
    """The answer of the table on the incumbent as it stands."""
    inert = frozenset(rule for rule, source in state.inert if source == state.incumbent)
    evidence = state.evidence
    question = Question(
        signals=state.signals.get(state.incumbent, {}),
        chip=asked.chip,
        context=context,
        prescriptions=state.offered(asked.prescriptions),
        promoted=frozenset(evidence.promoted) if asked.evolves else frozenset(),
        retired=frozenset(evidence.retired) if asked.evolves else frozenset(),
        tabu=inert if asked.tabu else frozenset(),
        spent=_spent(asked.policy, state) if asked.evolves else frozenset(),
    )
    if asked.draw is not None:
        return drawn(highest(asked.table), f"{asked.draw}:{state.judged + 1}", question)
    if asked.policy.order != "value":
        return match(asked.table, question)
    return first(by_value(highest(asked.table), lambda rule: _value(rule, asked, state, question)), question)


def _spent(policy: Policy, state: State) -> frozenset[str]:
    if isinstance(policy.patience, UnsetType):
        return frozenset()
    found = state.fruitless.items()
    return frozenset(rule for (rule, at), n in found if at == state.incumbent and n >= policy.patience)


def _value(rule: Rule, asked: Asked, state: State, question: Question) -> Fraction:
    gain = predicted_gain(rule.gain, question.signals, asked.chip)
    prior = 4 * asked.blocks * max(1, state.ns(state.incumbent))
    if not asked.evolves:
        return value(gain, 0, 0, [], prior)
    key = (rule.name, rule.version)
    tally = state.evidence.tally(key)
    costs = [2 * blocks * (state.ns(a) + state.ns(b)) for blocks, a, b in state.timed.get(key, [])]
    return value(gain, tally.successes, tally.failures, costs, prior)
