"""What the engine's own projections make of a ledger, as plain values for another program to compare. Never imports the verifier.

Retirements, promotions and answers to claims are those that the engine would decide on the recorded outcomes, not those recorded.
The names and fields are the shape that `gpusolver diff --against-engine` reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from msgspec import UnsetType

from ..events.model import Context, Event, RoundJudged, Rule, RuleRetired, RunRegistered
from ..events.reader import LedgerReader
from ..projections import examination
from ..projections.cell import CellState
from ..projections.cell import fold as fold_cell
from ..projections.claims import answer, claim_repetitions
from ..projections.confidence import confidence
from ..projections.evolution import decide, evidence
from ..projections.matcher import in_order
from ..projections.runs import RunView, cell_plan, cell_state, fold

Fields = dict[str, object]
Records = list[tuple[str, Event]]


def projected(path: str | Path, upto: int | None = None) -> dict[str, Fields]:
    """Every projected value of the first `upto` events (None: all) under its name. Raises UnreadableLedger."""
    with LedgerReader(path) as reader:
        records = [(stored.stream, stored.event) for stored in islice(reader.recorded(), upto)]
    found: dict[str, Fields] = {}
    for view in fold(records).values():
        found[f"{view.run} end"] = {"reason": view.stopped or "unfinished"}
        found |= {f"{view.run} rule {rule.name} version {rule.version}": _definition(rule) for rule in view.rules}
        if view.registration is not None:
            found |= _cells(view, view.registration, records) | _claims(view, view.registration)
    for exam in examination.fold(records).values():
        found |= _examination(exam)
    return found


def _definition(rule: Rule) -> Fields:
    gain = rule.gain
    share = None if isinstance(gain.share, UnsetType) else gain.share
    named = [word for word in (gain.form, gain.signal, gain.over, gain.under, share) if word]
    return {
        "clauses": [f"{clause.signal} {clause.op} {clause.threshold!r}" for clause in rule.clauses],
        "prescription": "stop" if rule.stop else rule.prescription,
        "tier": rule.tier,
        "position": rule.position,
        "guards": [f"{guard.over} / {guard.under} >= {guard.at_least!r}" for guard in rule.guards],
        "contracts": list(rule.contracts),
        "gain": f"{' '.join(named)}, at most {gain.cap!r}",
    }


def _cells(view: RunView, registration: RunRegistered, records: Records) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    streams = dict[str, list[Event]]()
    for stream, event in records:
        streams.setdefault(stream, []).append(event)
    for cell in registration.plan:
        stream = "/".join((view.run, cell.problem, cell.contract, cell.pool, cell.arm, str(cell.repetition)))
        if stream not in streams:
            continue
        state = cell_state(view, cell)
        silenced, raised = _evolved(view, state, streams[stream])
        for rule in in_order(view.rules, frozenset(raised)):
            found[f"{stream} rule {rule.name} version {rule.version}"] = _standing(state, rule, silenced, raised)
        found |= {f"{stream} round {judged.round}": _round(judged) for judged in state.rounds}
        found[f"{stream} end"] = {"reason": "unfinished" if state.stopped is None else state.stopped.reason}
    return found


Silenced = list[tuple[str, int, Context]]
Raised = list[tuple[str, int]]


def _evolved(view: RunView, state: CellState, events: Iterable[Event]) -> tuple[Silenced, Raised]:
    """What the policy decides after each verdict, whatever was recorded of it."""
    silenced, raised = Silenced(), Raised()
    if view.calibration is None:
        return silenced, raised
    plan, now = cell_plan(view, state.cell), CellState(cell=state.cell)
    for event in events:
        now = fold_cell(now, event)
        if isinstance(event, RoundJudged):
            for due in decide(plan, now):
                if isinstance(due, RuleRetired):
                    silenced.append((due.rule, due.rule_version, due.context))
                else:
                    raised.append((due.rule, due.rule_version))
    return silenced, raised


def _standing(state: CellState, rule: Rule, silenced: Silenced, raised: Raised) -> Fields:
    successes, failures, _ = evidence(state, rule.name, rule.version)
    where = [context for name, version, context in silenced if (name, version) == (rule.name, rule.version)]
    return {
        "fired": sum((judged.rule, judged.rule_version) == (rule.name, rule.version) for judged in state.rounds),
        "successes": successes,
        "failures": failures,
        "confidence": confidence(successes, failures),
        "retired": [f"{c.chip}/{c.contract}/{c.language}/{c.family}/{c.structure}" for c in where],
        "promoted": (rule.name, rule.version) in raised,
    }


def _round(judged: RoundJudged) -> Fields:
    interval = judged.interval
    return {
        "rule": judged.rule,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "credit": judged.credit,
        "lower": None if interval is None else interval.lower,
        "median": None if interval is None else interval.median,
        "upper": None if interval is None else interval.upper,
        "incumbent": judged.next_incumbent,
    }


def _claims(view: RunView, registration: RunRegistered) -> dict[str, Fields]:
    stated = {claim.claim for claim in view.claims}
    found: dict[str, Fields] = {}
    for claim in registration.claims:
        due = answer(view.run, claim, view.head_to_heads, claim_repetitions(registration, claim))
        known = claim.claim in stated
        fields: Fields = {"answer": due.answer if known else "not answered", "medians": due.medians if known else []}
        found[f"{view.run} claim {claim.claim}"] = fields
    return found


def _examination(view: examination.ExaminationView) -> dict[str, Fields]:
    found: dict[str, Fields] = {f"{view.run} end": {"reason": view.stopped or "unfinished"}}
    for name, examined in view.examined.items():
        answers = view.answers[name].answers if name in view.answers else ()
        fires = [answered.rule for answered in answers if answered.answer == "fires"]
        found[f"{view.run} subject {name}"] = {"outcome": examined.outcome, "fires": fires}
    for name, value in (view.stated or {}).items():
        found[f"{view.run} figure {name}"] = {"value": value}
    return found
