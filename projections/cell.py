"""One cell as a fold over its own stream, and what its evidence decides. Never looks at another cell, file or clock."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..events.errors import BadInput, UnreadableLedger
from ..events.model import (
    Cell,
    Chip,
    Context,
    Credit,
    Event,
    EvidenceCarried,
    GeneratorAsked,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    Policy,
    PrescriptionUnserved,
    ProblemDeclared,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    Rule,
    RuleFired,
    RulePromoted,
    RuleRetired,
    RunStopped,
    SourcesSwept,
    Statistics,
    cell_stream,
)
from .confidence import confidence, promotes, retires
from .matcher import (
    Match,
    RuleVersion,
    Silenced,
    Situation,
    draw,
    in_order,
    match,
    newest,
    predicted_gain,
    standing_block,
)
from .worth import Record, by_worth, worth

INTERRUPTIONS_ALLOWED = 3


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that an arm's name stands for: `on` evolves and `off` does not; `+tabu` adds the memory of inert firings.

    `random` draws among the prescriptions by the registered seed, and asks no clause.
    """

    evolves: bool
    tabu: bool
    random: bool = False


class CellPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a cell that is registered before its first measurement."""

    run: str
    cell: Cell
    rules: tuple[Rule, ...]
    chip: Chip
    problem: ProblemDeclared
    policy: Policy
    statistics: Statistics
    max_rounds: int
    seed: int = 0
    carried: tuple[EvidenceCarried, ...] = ()


class Credited(msgspec.Struct, frozen=True, kw_only=True):
    """One firing's success or failure, in the context in which it fired; neutral ends leave none."""

    rule: str
    rule_version: int
    context: Context
    firing: str
    credit: Credit


class CellState(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell's stream says so far; begin with `CellState(cell=...)`, where nothing has been attempted (round -1).

    Mappings are keyed by source digest, `fired` by firing id. `open` means that a RoundAttempted has no end yet; round 0
    ends with its NoiseFloorMeasured or a gate not passed, a later round with its RoundJudged or PrescriptionUnserved, either
    with RoundInterrupted. `asked` is what generators of the chain were asked, `swept` their sweeps, each beside the incumbent, `unserved` are the (prescription, incumbent) that no generator had a candidate for.
    `interruptions` counts those of the current round and is 0 once it has ended well; `interrupted` counts them all.
    """

    cell: Cell
    round: int = -1
    attempt: int = 0
    open: bool = False
    interruptions: int = 0
    interrupted: int = 0
    start: str | None = None
    incumbent: str | None = None
    gates: dict[str, str] = {}
    signals: dict[str, dict[str, float]] = {}
    launches: dict[str, str] = {}
    floors: dict[str, float] = {}
    alone: dict[str, str] = {}
    reports: dict[str, str] = {}
    fired: dict[str, RuleFired] = {}
    last_firing: str | None = None
    credited: tuple[Credited, ...] = ()
    retired: frozenset[Silenced] = frozenset()
    promoted: frozenset[RuleVersion] = frozenset()
    inert: frozenset[tuple[str, str]] = frozenset()
    asked: tuple[GeneratorAsked, ...] = ()
    swept: tuple[tuple[str | None, SourcesSwept], ...] = ()
    unserved: frozenset[tuple[str, str]] = frozenset()
    rounds: tuple[RoundJudged, ...] = ()
    stopped: RunStopped | None = None


def arm_policy(name: str) -> Arm:
    """Read an arm's name (`off`, `on`, `off+tabu`, `on+tabu`, `random`); BadInput for any other."""
    if name == "random":
        return Arm(evolves=False, tabu=False, random=True)
    base, *more = name.split("+")
    if base not in ("off", "on") or more not in ([], ["tabu"]):
        raise BadInput(f"arm {name!r}: expected off, on, off+tabu, on+tabu or random; correct the plan's arms")
    return Arm(evolves=base == "on", tabu=bool(more))


def fold(state: CellState, event: Event) -> CellState:
    """The state after one more event; events of other cells, and kinds that say nothing about a cell, change nothing.

    UnreadableLedger where a RoundJudged names a firing that the stream does not hold.
    """
    if getattr(event, "cell", None) != state.cell:
        return state
    match event:
        case RoundAttempted():
            interruptions = state.interruptions if event.round == state.round else 0
            return replace(state, round=event.round, attempt=event.attempt, open=True, interruptions=interruptions)
        case RoundInterrupted():
            return replace(state, open=False, interruptions=state.interruptions + 1, interrupted=state.interrupted + 1)
        case KernelGenerated(firing=None):
            return replace(state, start=event.source, incumbent=event.source)
        case KernelGated():
            launches = state.launches if event.launches is None else {**state.launches, event.source: event.launches}
            unfit = event.round == 0 and event.outcome != "passed"
            gates = {**state.gates, event.source: event.outcome}
            passed = event.outcome == "passed"
            reports = {**state.reports, event.source: event.report} if passed else state.reports
            return replace(state, gates=gates, launches=launches, reports=reports, open=state.open and not unfit)
        case Profiled():
            return replace(
                state,
                signals={**state.signals, event.source: event.signals},
                launches={**state.launches, event.source: event.launches},
            )
        case NoiseFloorMeasured():
            ended = {"open": False, "interruptions": 0} if event.round == 0 else {}
            return replace(
                state,
                floors={**state.floors, event.source: event.floor},
                alone={**state.alone, event.source: event.samples},
                **ended,
            )
        case RuleFired():
            return replace(state, fired={**state.fired, event.firing: event}, last_firing=event.firing)
        case RoundJudged():
            return _judged(state, event)
        case GeneratorAsked():
            return replace(state, asked=(*state.asked, event))
        case SourcesSwept():
            return replace(state, swept=(*state.swept, (state.incumbent, event)))
        case PrescriptionUnserved():
            lacking = state.unserved | {(event.prescription, event.incumbent)}
            return replace(state, open=False, interruptions=0, unserved=lacking)
        case RuleRetired():
            return replace(state, retired=state.retired | {(event.rule, event.rule_version, event.context)})
        case RulePromoted():
            return replace(state, promoted=state.promoted | {(event.rule, event.rule_version)})
        case RunStopped():
            return replace(state, open=False, stopped=event)
        case _:
            return state


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
        retired=_silenced(plan, state),
        tabu=tabu,
        spent=_spent(plan, state),
    )
    if arm.random:
        drawn = f"{plan.seed}:{cell_stream(plan.run, plan.cell)}:{len(state.rounds) + 1}"
        return draw(newest(plan.rules), drawn, signals, situation)
    return match(_asked(plan, state), signals, situation)


def _asked(plan: CellPlan, state: CellState) -> tuple[Rule, ...]:
    """The rules in the order that the registered policy asks them in."""
    if plan.policy.order == UNSET:
        return in_order(plan.rules, _promoted(plan, state))
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


def live_rules(plan: CellPlan, state: CellState, context: Context) -> tuple[Rule, ...]:
    """The rules that may still fire on a kernel of `context`: of each name the highest version, without those retired there and
    those that contract, guard or a lacking variant blocks in this cell.

    Only these need to be measured for, so that a retirement makes the next profile cheaper. Arms that do not evolve retire none.
    """
    silenced = _silenced(plan, state) if arm_policy(plan.cell.arm).evolves else frozenset[Silenced]()
    return tuple(
        rule
        for rule in in_order(plan.rules, _promoted(plan, state))
        if (rule.name, rule.version, context) not in silenced
        and standing_block(rule, plan.chip, plan.cell.contract, plan.problem.prescriptions) is None
    )


def decide(plan: CellPlan, state: CellState) -> tuple[RuleRetired | RulePromoted, ...]:
    """What the last RoundJudged brings about for its rule: a retirement in the firing's context, a promotion, or nothing.

    Ask right after folding a RoundJudged, and before folding what this returns. Arms that do not evolve decide nothing.
    """
    if not state.rounds or not arm_policy(plan.cell.arm).evolves:
        return ()
    judged = state.rounds[-1]
    name, version, context = judged.rule, judged.rule_version, state.fired[judged.firing].context
    decisions: list[RuleRetired | RulePromoted] = []
    successes, failures, firings = weighed(plan, state, name, version, context)
    if (name, version, context) not in state.retired and retires(successes, failures, plan.policy):
        decisions.append(
            RuleRetired(
                cell=plan.cell,
                rule=name,
                rule_version=version,
                context=context,
                successes=successes,
                failures=failures,
                confidence=confidence(successes, failures),
                firings=firings,
            )
        )
    successes, failures, firings = weighed(plan, state, name, version)
    if (name, version) not in _promoted(plan, state) and promotes(successes, failures, plan.policy):
        decisions.append(
            RulePromoted(
                cell=plan.cell,
                rule=name,
                rule_version=version,
                successes=successes,
                failures=failures,
                confidence=confidence(successes, failures),
                firings=firings,
            )
        )
    return tuple(decisions)


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


def _silenced(plan: CellPlan, state: CellState) -> frozenset[Silenced]:
    """What the cell retired, and what the carried trials alone retire."""
    places = {(entry.rule, entry.rule_version, entry.context) for entry in plan.carried}
    return state.retired | {place for place in places if retires(*_carried(plan, *place), plan.policy)}


def _promoted(plan: CellPlan, state: CellState) -> frozenset[RuleVersion]:
    """What the cell promoted, and what the carried trials alone promote; in an arm that does not evolve, nothing."""
    versions = {(entry.rule, entry.rule_version) for entry in plan.carried}
    if not arm_policy(plan.cell.arm).evolves:
        return state.promoted
    return state.promoted | {version for version in versions if promotes(*_carried(plan, *version), plan.policy)}


def next_attempt(state: CellState) -> tuple[int, int]:
    """Round and attempt that come next: the interrupted round again, else the next round; an open attempt must end first."""
    return (state.round, state.attempt + 1) if state.interruptions else (state.round + 1, 1)


def must_stop(plan: CellPlan, state: CellState) -> str | None:
    """Why the cell may not attempt another round whatever the table says, in the words of RunStopped, or None."""
    if state.round == 0 and state.start is not None and state.gates.get(state.start, "passed") != "passed":
        return "start unfit"
    if state.interruptions >= INTERRUPTIONS_ALLOWED:
        return "interrupted too often"
    if state.round >= plan.max_rounds and not state.open and not state.interruptions:
        return "rounds exhausted"
    return None


def _judged(state: CellState, event: RoundJudged) -> CellState:
    if event.firing not in state.fired:
        raise UnreadableLedger(
            f"RoundJudged of round {event.round} credits firing {event.firing!r}, but its stream holds no such RuleFired; "
            "the ledger is cut or was written by hand: run gpusolver replay --verify on it"
        )
    credited = state.credited
    if event.credit != "neutral":
        entry = Credited(
            rule=event.rule,
            rule_version=event.rule_version,
            context=state.fired[event.firing].context,
            firing=event.firing,
            credit=event.credit,
        )
        credited = (*credited, entry)
    inert = state.inert | {(event.rule, event.incumbent)} if event.inert else state.inert
    return replace(
        state,
        open=False,
        interruptions=0,
        incumbent=event.next_incumbent,
        credited=credited,
        inert=inert,
        rounds=(*state.rounds, event),
    )
