"""The recorded measurements played under another evolution policy, cell by cell. Never invents an outcome: what the ledger holds no
measurement of ends the cell's play, and is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
from msgspec.structs import replace

from ..events.model import (
    Cell,
    Context,
    DeviceCalibrated,
    EvidenceCarried,
    ProblemDeclared,
    RoundJudged,
    Rule,
    RunRegistered,
)
from . import derive_signals
from .artifacts import Launches
from .asking import Asked, ask
from .courses import CellPlayed, Course, Step, Unanswered, parted, recorded_course, step
from .grammar import Round, Script
from .matching import Decision
from .policy import Played
from .runs import RunEvents
from .shelf import Shelf
from .side import ended, script
from .state import State


class Group(msgspec.Struct, frozen=True):
    """What one cell is played with: the registration, its problem and chip, and the scripts of all cells that share its kernels."""

    run: RunRegistered
    problem: ProblemDeclared
    device: DeviceCalibrated
    table: tuple[Rule, ...]
    shelf: Shelf
    carried: tuple[EvidenceCarried, ...] = ()


Key = tuple[str, str | None]
Measured = tuple[str, Round]


class Taught(msgspec.Struct, frozen=True):
    """What a cell is played with in place of what its run registered."""

    table: tuple[Rule, ...]
    carried: tuple[EvidenceCarried, ...]


def play(run: RunEvents, policy: Played, shelf: Shelf) -> Iterator[CellPlayed]:
    """Every cell of a run that has begun, in the order of the plan."""
    taught = Taught(run.table(), run.carries())
    scripts = scripts_of(run)
    for stream in scripts:
        yield play_cell(run, stream, scripts, policy, shelf, taught)


def scripts_of(run: RunEvents) -> dict[str, Script]:
    """The cells that have begun, in the order of the plan."""
    return {stream: script(run, stream) for stream in run.planned if stream in run.cells}


def play_cell(
    run: RunEvents, stream: str, scripts: dict[str, Script], policy: Played, shelf: Shelf, taught: Taught
) -> CellPlayed:
    """One cell under a policy and a table; what cannot be played says why."""
    cell, own = run.planned[stream], scripts[stream]
    try:
        assert run.registered is not None  # there is no plan without
        registered = run.registered[1]
        problem = next(p for p in registered.problems if p.name == cell.problem)
        group = Group(registered, problem, run.devices[0][1], taught.table, shelf, taught.carried)
        pool = _Pool(stream, own, _others(stream, run.planned, scripts))
        return _Play(stream, cell, group, policy, pool).outcome(own)
    except Exception as error:  # noqa: BLE001 - a damaged cell may raise anything, and must not stop the others
        nothing = Course((), None, "", None)
        return CellPlayed(stream, nothing, nothing, None, None, (), None, f"{type(error).__name__}: {error}")


def _others(stream: str, planned: dict[str, Cell], scripts: dict[str, Script]) -> list[tuple[str, Script]]:
    """The other cells with the same kernels, those of the same repetition first."""
    own = planned[stream]
    same = [s for s in scripts if s != stream and _kernels(planned[s]) == _kernels(own)]
    same.sort(key=lambda s: planned[s].repetition != own.repetition)
    return [(s, scripts[s]) for s in same]


def _kernels(cell: Cell) -> tuple[str, str, str]:
    return cell.problem, cell.contract, cell.pool


class _Pool:
    """Recorded rounds by (incumbent, prescription), each handed out once: the cell's own first, then those of the others."""

    def __init__(self, stream: str, own: Script, others: Iterable[tuple[str, Script]]) -> None:
        self._rounds: dict[Key, list[Measured]] = {}
        self._own: list[int] = []
        self._unserved: set[tuple[str, str]] = set()
        for name, found in ((stream, own), *others):
            for round_ in found.rounds:
                if round_.unserved is not None:
                    self._unserved.add((round_.unserved.prescription, round_.unserved.incumbent))
            for round_ in ended(found):
                if round_.fired is not None and round_.judged is not None:
                    key = (round_.judged.incumbent, round_.fired.prescription)
                    self._rounds.setdefault(key, []).append((name, round_))
                    self._own += [round_.judged.round] if name == stream else []
        self._stream = stream

    def take(self, incumbent: str, prescription: str | None) -> Measured | None:
        """The next recorded round that prescribed this to this incumbent; None where there is none left."""
        waiting = self._rounds.get((incumbent, prescription))
        if not waiting:
            return None
        name, round_ = waiting.pop(0)
        if name == self._stream:
            self._own.remove(round_.attempted.round)
        return name, round_

    def offered(self, incumbent: str, prescriptions: tuple[str, ...]) -> tuple[str, ...]:
        """Without those that no generator had a candidate for when it was asked about this incumbent."""
        return tuple(p for p in prescriptions if (p, incumbent) not in self._unserved)

    def unused(self) -> tuple[int, ...]:
        """The cell's own rounds that were not handed out."""
        return tuple(self._own)


class _Play:
    """One cell under the policy: rules are asked by the page's matcher, outcomes come from the pool."""

    def __init__(self, stream: str, cell: Cell, group: Group, policy: Played, pool: _Pool) -> None:
        self._stream, self._cell, self._at, self._policy, self._pool = stream, cell, group, policy, pool
        self._credible = policy.credible(group.run.policy)
        self._asked = Asked(
            table=group.table,
            policy=self._credible,
            evolves=policy.evolves,
            tabu=policy.tabu,
            chip=group.device.chip,
            prescriptions=group.problem.prescriptions,
            blocks=group.run.statistics.blocks,
        )
        self._most = policy.max_rounds or group.run.max_rounds
        self._state = State(group.carried, self._credible)

    def outcome(self, own: Script) -> CellPlayed:
        """Both courses, and where they part."""
        recorded = recorded_course(self._stream, own)
        rounds = ended(own)
        if not rounds or rounds[0].attempted.round != 0:
            return CellPlayed(self._stream, recorded, recorded, None, None, (), None, "round 0 is not in the record")
        self._state.incumbent = rounds[0].attempted.incumbent
        self._remember(rounds[0])
        gated = rounds[0].gated
        if gated is not None and gated.outcome != "passed":
            return CellPlayed(self._stream, recorded, recorded, None, 0, (), None)
        steps, end, unanswered = self._rounds()
        time_us = self._state.signals.get(self._state.incumbent, {}).get("time_us")
        played = Course(tuple(steps), end, self._state.incumbent, time_us)
        whole = recorded.end is not None and end is not None
        return CellPlayed(
            cell=self._stream,
            recorded=recorded,
            played=played,
            parted=parted(recorded, played, unanswered),
            saved=len(recorded.steps) - len(steps) if whole else None,
            unused=self._pool.unused(),
            unanswered=unanswered,
        )

    def _rounds(self) -> tuple[list[Step], str | None, Unanswered | None]:
        """Rounds until an end, or until the ledger has no answer."""
        steps: list[Step] = []
        for number in range(1, self._most + 1):
            decision = self._decide()
            rule = decision.rule
            if rule is None:
                return steps, "no rule fires", None
            if rule.stop:
                return steps, f"stop rule {rule.name}", None
            found = self._pool.take(self._state.incumbent, rule.prescription)
            if found is None:
                asked = Unanswered(number, rule.name, rule.version, rule.prescription or "", self._state.incumbent)
                return steps, None, asked
            steps.append(self._judge(number, rule, *found))
        return steps, "rounds exhausted", None

    def _decide(self) -> Decision:
        offered = self._pool.offered(self._state.incumbent, self._at.problem.prescriptions)
        return ask(replace(self._asked, prescriptions=offered), self._state, self._context())

    def _context(self) -> Context:
        digest = self._state.launches.get(self._state.incumbent)
        launches = None if digest is None else self._at.shelf.json(digest, Launches)
        at = self._at
        return derive_signals.context(at.device.chip, self._cell.contract, at.problem.family, launches, at.shelf)

    def _judge(self, number: int, rule: Rule, name: str, round_: Round) -> Step:
        """The recorded outcome, credited to the rule that fires here, and what the policy makes of it."""
        state, judged, context = self._state, cast(RoundJudged, round_.judged), self._context()
        key = (rule.name, rule.version)
        self._remember(round_)
        # The round may have been recorded under another rule of the same prescription: it counts for the one that fires here.
        state.account(replace(judged, rule=rule.name, rule_version=rule.version))
        state.evidence.credit(key, context, judged.credit, f"{self._stream}/{number}.1")
        state.incumbent = judged.next_incumbent
        if self._policy.evolves:
            if state.evidence.retirement(key, context, self._credible) is not None:
                state.evidence.retired.add((key, context))
            if state.evidence.promotion(key, self._credible) is not None:
                state.evidence.promoted.add(key)
        return step(number, rule.name, rule.version, name, round_)

    def _remember(self, round_: Round) -> None:
        """Launches and signals of the round's sources, as the record gives them."""
        if round_.gated is not None and round_.gated.launches is not None:
            self._state.launches[round_.gated.source] = round_.gated.launches
        if round_.profiled is not None:
            self._state.signals[round_.profiled.source] = round_.profiled.signals
            self._state.launches[round_.profiled.source] = round_.profiled.launches
