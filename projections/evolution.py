"""What a cell's evidence weighs, with what was carried into the run, and which rules it retires and promotes. Never asks a rule."""

from __future__ import annotations

from ..events.model import Context, RulePromoted, RuleRetired
from .cell import CellState
from .cell_plan import CellPlan, arm_policy
from .confidence import confidence, promotes, retires
from .matcher import RuleVersion, Silenced


def decide(plan: CellPlan, state: CellState) -> tuple[RuleRetired | RulePromoted, ...]:
    """What the last RoundJudged brings about for its rule: a retirement in the firing's context, a promotion, or nothing.

    Ask right after folding a RoundJudged, and before folding what this returns. Arms that do not evolve decide nothing.
    """
    if not state.rounds or not arm_policy(plan.cell.arm).evolves:
        return ()
    judged = state.rounds[-1]
    name, version, context = judged.rule, judged.rule_version, state.fired[judged.firing].context
    found = (_retirement(plan, state, name, version, context), _promotion(plan, state, name, version))
    return tuple(decision for decision in found if decision is not None)


def _retirement(plan: CellPlan, state: CellState, rule: str, version: int, context: Context) -> RuleRetired | None:
    successes, failures, firings = weighed(plan, state, rule, version, context)
    if (rule, version, context) in state.retired or not retires(successes, failures, plan.policy):
        return None
    return RuleRetired(
        cell=plan.cell,
        rule=rule,
        rule_version=version,
        context=context,
        successes=successes,
        failures=failures,
        confidence=confidence(successes, failures),
        firings=firings,
    )


def _promotion(plan: CellPlan, state: CellState, rule: str, version: int) -> RulePromoted | None:
    successes, failures, firings = weighed(plan, state, rule, version)
    if (rule, version) in promoted(plan, state) or not promotes(successes, failures, plan.policy):
        return None
    return RulePromoted(
        cell=plan.cell,
        rule=rule,
        rule_version=version,
        successes=successes,
        failures=failures,
        confidence=confidence(successes, failures),
        firings=firings,
    )


def evidence(
    state: CellState, rule: str, rule_version: int, context: Context | None = None
) -> tuple[int, int, tuple[str, ...]]:
    """Successes, failures and their firing ids in order, of one rule version: in one context, or pooled over all (None)."""
    counted = [
        entry
        for entry in state.credited
        if (entry.rule, entry.rule_version) == (rule, rule_version) and context in (None, entry.context)
    ]
    successes = sum(entry.credit == "success" for entry in counted)
    return successes, len(counted) - successes, tuple(entry.firing for entry in counted)


def weighed(
    plan: CellPlan, state: CellState, rule: str, rule_version: int, context: Context | None = None
) -> tuple[int, int, tuple[str, ...]]:
    """As `evidence`, with the trials that were carried into the run added to both counts; the firings are the cell's own."""
    successes, failures, firings = evidence(state, rule, rule_version, context)
    helped, failed = _carried(plan, rule, rule_version, context)
    return successes + helped, failures + failed, firings


def _carried(plan: CellPlan, rule: str, rule_version: int, context: Context | None = None) -> tuple[int, int]:
    counted = [
        entry
        for entry in plan.carried
        if (entry.rule, entry.rule_version) == (rule, rule_version) and context in (None, entry.context)
    ]
    return sum(len(entry.helped) for entry in counted), sum(len(entry.failed) for entry in counted)


def silenced(plan: CellPlan, state: CellState) -> frozenset[Silenced]:
    """What the cell retired, and what the carried trials alone retire."""
    places = {(entry.rule, entry.rule_version, entry.context) for entry in plan.carried}
    return state.retired | {place for place in places if retires(*_carried(plan, *place), plan.policy)}


def promoted(plan: CellPlan, state: CellState) -> frozenset[RuleVersion]:
    """What the cell promoted, and what the carried trials alone promote; in an arm that does not evolve, nothing."""
    versions = {(entry.rule, entry.rule_version) for entry in plan.carried}
    if not arm_policy(plan.cell.arm).evolves:
        return state.promoted
    return state.promoted | {version for version in versions if promotes(*_carried(plan, *version), plan.policy)}
