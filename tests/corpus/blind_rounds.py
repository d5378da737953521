"""One round of the loop on a kernel written blind, and what must hold of it whatever the kernel is. Says nothing of which rule ought to fire."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpusolver.engine.executor import Executor
from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.events.model import Event, Profiled, RoundJudged, RuleFired, RuleSeeded, RunStopped
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem
from gpusolver.replay.verify import verify

from ..engine.support import ignore, only, stored

FOLDER = Path(__file__).parent / "blind"
FILES = tuple(sorted(FOLDER.glob("*.py")))
FEWEST_BLOCKS = 12
DECIDING = (Profiled, RuleFired, RoundJudged, RunStopped)


def play(path: Path, executor: Executor, problem: Problem) -> None:
    """The full table, one round of the arm `on`, no comparison after it."""
    asked = RunRequest(
        problems=(problem.name,),
        imported={problem.name: problem},
        arms=("on",),
        rounds=1,
        rules="full",
        comparisons=(),
        generators=("module", "catalogue"),
        blocks=msgspec.UNSET if executor.origin is not None else FEWEST_BLOCKS,
    )
    with LedgerWriter(path) as ledger:
        Run(ledger, executor, ignore).start(asked)


def events(path: Path) -> list[Event]:
    """All of the ledger, in order."""
    return [recorded.event for recorded in stored(path)]


def assert_holds(path: Path, problem: Problem) -> None:
    """Replay finds nothing; what was measured, asked again, is decided as before; no rule fired on a signal that its profile lacks."""
    assert verify(path, deep=True).findings == ()
    seen = events(path)
    assert only(seen, Profiled)
    assert_again(path, seen, problem)
    assert_none_fired_on_missing(seen)


def assert_again(path: Path, seen: list[Event], problem: Problem) -> None:
    """A second derivation of all signals, matches and verdicts from the recorded artifacts."""
    again = path.with_name("again.db")
    play(again, RecordedExecutor(path), problem)
    assert verify(again, deep=True, origin=path).findings == ()
    first, second = (
        [_decided(event) for event in found if isinstance(event, DECIDING)] for found in (seen, events(again))
    )
    assert first == second


def _decided(event: Event) -> Event:
    return msgspec.structs.replace(event, origin_seq=None) if isinstance(event, Profiled) else event


def assert_none_fired_on_missing(seen: list[Event]) -> None:
    """Of each firing: all signals of its rule's conditions are in the incumbent's profile, with the values that it states."""
    table = {(event.rule.name, event.rule.version): event.rule for event in only(seen, RuleSeeded)}
    profiles: dict[str, Profiled] = {}
    for event in seen:
        if isinstance(event, Profiled):
            profiles[event.source] = event
        if isinstance(event, RuleFired):
            signals = profiles[event.incumbent].signals
            rule = table[event.rule, event.rule_version]
            assert not {clause.signal for clause in rule.clauses} - set(signals)
            assert all(signals[clause.signal] == clause.value for clause in event.clauses)
            assert all(set(each.missing).isdisjoint(signals) for each in event.abstained)
