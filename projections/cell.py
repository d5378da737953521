"""One cell as a fold over its own stream: what its events say so far. Decides nothing, and never looks at another cell, file or clock."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..events.errors import UnreadableLedger
from ..events.model import (
    Cell,
    Context,
    Credit,
    Event,
    GeneratorAsked,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    PrescriptionUnserved,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    RuleFired,
    RulePromoted,
    RuleRetired,
    RunStopped,
    SourcesSwept,
)
from .matcher import RuleVersion, Silenced


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
    with RoundInterrupted. `asked` is what generators of the chain were asked, `swept` their sweeps, each beside the incumbent,
    `unfit` says why the start does not count, `unserved` are the (prescription, incumbent) that no generator had a candidate for.
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
    unfit: str = ""
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


def fold(state: CellState, event: Event) -> CellState:
    """The state after one more event; events of other cells, and kinds that say nothing about a cell, change nothing.

    UnreadableLedger where a RoundJudged names a firing that the stream does not hold.
    """
    if getattr(event, "cell", None) != state.cell:
        return state
    match event:
        case RoundAttempted():
            return _attempted(state, event)
        case RoundInterrupted():
            return replace(state, open=False, interruptions=state.interruptions + 1, interrupted=state.interrupted + 1)
        case KernelGenerated(firing=None):
            return replace(state, start=event.source, incumbent=event.source)
        case KernelGated():
            return _gated(state, event)
        case Profiled():
            return _profiled(state, event)
        case NoiseFloorMeasured():
            return _floored(state, event)
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


def _attempted(state: CellState, event: RoundAttempted) -> CellState:
    interruptions = state.interruptions if event.round == state.round else 0
    return replace(state, round=event.round, attempt=event.attempt, open=True, interruptions=interruptions)


def _gated(state: CellState, event: KernelGated) -> CellState:
    passed = event.outcome == "passed"
    unfit = event.round == 0 and not passed
    return replace(
        state,
        unfit=f"{event.outcome}: {event.reason}" if unfit else "",
        gates={**state.gates, event.source: event.outcome},
        launches=state.launches if event.launches is None else {**state.launches, event.source: event.launches},
        reports={**state.reports, event.source: event.report} if passed else state.reports,
        open=state.open and not unfit,
    )


def _profiled(state: CellState, event: Profiled) -> CellState:
    return replace(
        state,
        signals={**state.signals, event.source: event.signals},
        launches={**state.launches, event.source: event.launches},
    )


def _floored(state: CellState, event: NoiseFloorMeasured) -> CellState:
    ended = {"open": False, "interruptions": 0} if event.round == 0 else {}
    return replace(
        state,
        floors={**state.floors, event.source: event.floor},
        alone={**state.alone, event.source: event.samples},
        **ended,
    )


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
