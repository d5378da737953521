"""The events that a cell's loop records of its rounds: firing, candidate, verdict, or that nobody could follow. Appends nothing."""

from __future__ import annotations

from ..events.model import KernelGenerated, PrescriptionUnserved, RoundJudged, RuleFired, firing_id
from ..profilers.verdicts import Judgement, credit
from ..projections.matcher import Match
from .cell_ledger import CellLedger
from .records import Draft


def firing(cell: CellLedger, found: Match, round_: int, attempt: int) -> RuleFired:
    """The rule that fired on the incumbent, in the incumbent's context."""
    assert found.fired is not None
    rule = found.fired
    return RuleFired(
        cell=cell.plan.cell,
        round=round_,
        firing=firing_id(cell.plan.run, cell.plan.cell, round_, attempt),
        rule=rule.name,
        rule_version=rule.version,
        prescription=rule.prescription,
        incumbent=cell.incumbent,
        context=cell.context(cell.incumbent),
        clauses=found.clauses,
        abstained=found.abstained,
        blocked=found.blocked,
        predicted_gain=found.predicted_gain,
    )


def generated(
    cell: CellLedger, draft: Draft, firing: str | None, text: str, generator: str, variant: str
) -> KernelGenerated:
    """A source, kept in the draft; `firing` None: the starting kernel, which has no parent."""
    return KernelGenerated(
        cell=cell.plan.cell,
        round=cell.state.round,
        firing=firing,
        generator=generator,
        variant=variant,
        source=draft.keep_source(text),
        parent=None if firing is None else cell.incumbent,
    )


def judged(cell: CellLedger, fired: RuleFired, candidate: str, judgement: Judgement) -> RoundJudged:
    """The verdict on a candidate (its digest), credited by firing id, and who is the incumbent from here on."""
    return RoundJudged(
        cell=cell.plan.cell,
        round=cell.state.round,
        attempt=cell.state.attempt,
        firing=fired.firing,
        rule=fired.rule,
        rule_version=fired.rule_version,
        candidate=candidate,
        incumbent=cell.incumbent,
        verdict=judgement.verdict,
        reason=judgement.reason,
        inert=judgement.inert,
        interval=judgement.interval,
        margin=judgement.margin,
        credit=credit(judgement.verdict),
        next_incumbent=candidate if judgement.verdict == "FASTER" else cell.incumbent,
    )


def unserved(cell: CellLedger, fired: RuleFired) -> PrescriptionUnserved:
    """Nobody could follow the prescription: the round ends without a verdict, and this incumbent is not prescribed it again."""
    assert fired.prescription is not None  # stop rules end the cell
    return PrescriptionUnserved(
        cell=cell.plan.cell,
        round=cell.state.round,
        attempt=cell.state.attempt,
        firing=fired.firing,
        rule=fired.rule,
        rule_version=fired.rule_version,
        prescription=fired.prescription,
        incumbent=cell.incumbent,
        reason="no generator has a candidate",
    )
