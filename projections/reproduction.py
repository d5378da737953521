"""What a ledger states of pairs of kernels, and what comparing them again says of each statement. Never measures, never reads a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ..events.errors import BadInput
from ..events.model import (
    ClaimRegistered,
    ClaimStated,
    DeviceCalibrated,
    Event,
    HeadToHead,
    Interval,
    KernelExamined,
    ProblemDeclared,
    RoundJudged,
    RunRegistered,
    StatementDeclared,
    StatementReproduced,
    Verdict,
    cell_stream,
)
from .claims import claim_repetitions, median_and_lower, reaches
from .examination import ExaminationView
from .runs import EXAMINATION

KINDS = ("claim", "comparison", "round")
Found = Literal["confirmed", "not confirmed", "other chip"]


class Compared(msgspec.Struct, frozen=True):
    """An ordered pair of sources under a problem and a contract."""

    problem: ProblemDeclared
    contract: str
    left: str
    right: str

    @property
    def name(self) -> str:
        """Unique among the pairs of a ledger, as far as twelve digits of a SHA-256 are."""
        return f"{self.problem.name}/{self.contract}/{self.left[:12]}/{self.right[:12]}"


class Statements(msgspec.Struct, frozen=True):
    """The statements of a ledger in the order of their events; by name every pair that they rest on, and the verdict it first had."""

    stated: tuple[StatementDeclared, ...]
    pairs: dict[str, Compared]
    verdicts: dict[str, Verdict]


def statements(records: Iterable[tuple[int, str, Event]], kinds: Iterable[str] = KINDS) -> Statements:
    """What the records (seq, stream, event) state: answered claims, comparisons with a verdict, rounds that were FASTER."""
    reading, asked = _Reading(), frozenset(kinds)
    for seq, stream, event in records:
        if not stream.startswith(EXAMINATION):
            reading.take(seq, event)
    chosen = tuple(statement for statement in reading.stated if statement.kind in asked)
    named = {name for statement in chosen for name in statement.pairs}
    return Statements(chosen, {name: pair for name, pair in reading.pairs.items() if name in named}, reading.verdicts)


class _Reading:
    """One pass over a ledger's runs."""

    def __init__(self) -> None:
        self.stated: list[StatementDeclared] = []
        self.pairs: dict[str, Compared] = {}
        self.verdicts: dict[str, Verdict] = {}
        self._runs: dict[str, RunRegistered] = {}
        self._chips: dict[str, str] = {}
        self._compared: dict[str, list[HeadToHead]] = {}
        # Runs whose medians are no speeds: an examination, which compares times, cannot ask them again.
        self._apart: set[str] = set()

    def take(self, seq: int, event: Event) -> None:
        if isinstance(event, RunRegistered) and event.statistics.objective is not UNSET:
            self._apart.add(event.run)
        if _run_of(event) not in self._apart:
            self._take(seq, event)

    def _take(self, seq: int, event: Event) -> None:
        match event:
            case RunRegistered():
                self._runs[event.run] = event
            case DeviceCalibrated():
                self._chips[event.run] = event.chip.name
            case RoundJudged() if event.verdict == "FASTER" and event.interval is not None:
                self._round(seq, event, event.interval)
            case HeadToHead():
                self._compared.setdefault(event.run, []).append(event)
                if event.outcome == "measured" and event.interval is not None:
                    self._comparison(seq, event, event.interval)
            case ClaimStated() if event.answer != "unanswerable":
                self._claim(seq, event)
            case _:
                pass

    def _round(self, seq: int, event: RoundJudged, interval: Interval) -> None:
        cell = event.cell
        run = event.firing.partition("/")[0]
        text = f"{cell_stream(run, cell)} round {event.round}: {event.rule}"
        pair = self._pair(run, cell.problem, cell.contract, event.incumbent, event.candidate)
        self.verdicts.setdefault(pair, event.verdict)
        self._state(seq, "round", text, run, (pair,), (interval.median,), event.verdict)

    def _comparison(self, seq: int, event: HeadToHead, interval: Interval) -> None:
        pair, verdict = self._sides(event), verdict_of(interval, self._registered(event.run).statistics.margin)
        self.verdicts.setdefault(pair, verdict)
        if verdict == "AMBIGUOUS":
            return
        text = f"{event.run}/{event.problem}/{event.contract}/{event.pool}/{event.repetition} {event.comparison}"
        self._state(seq, "comparison", text, event.run, (pair,), (interval.median,), verdict)

    def _claim(self, seq: int, event: ClaimStated) -> None:
        registered = self._registered(event.run)
        claim = next((claim for claim in registered.claims if claim.claim == event.claim), None)
        if claim is None:
            raise BadInput(f"event {seq}: {event.run} answers a claim it never registered: {event.claim!r}")
        counted = [self._counted(event.run, claim, number) for number in claim_repetitions(registered, claim)]
        pairs = tuple(dict.fromkeys(self._sides(found) for found in counted if found and found.outcome == "measured"))
        identical = sum(found is not None and found.outcome == "identical" for found in counted)
        if pairs:
            self._state(seq, "claim", claim.text, event.run, pairs, event.medians, event.answer, identical, claim)

    def _counted(self, run: str, claim: ClaimRegistered, repetition: int) -> HeadToHead | None:
        """The comparison that answered the claim in a repetition: the first that has a median."""
        scope = (claim.problem, claim.contract, claim.pool, claim.comparison, repetition)
        for found in self._compared.get(run, ()):
            where = (found.problem, found.contract, found.pool, found.comparison, found.repetition)
            if where == scope and median_and_lower(found) is not None:
                return found
        return None

    def _sides(self, event: HeadToHead) -> str:
        return self._pair(event.run, event.problem, event.contract, event.left, event.right)

    def _pair(self, run: str, problem: str, contract: str, left: str, right: str) -> str:
        declared = next((known for known in self._registered(run).problems if known.name == problem), None)
        if declared is None:
            raise BadInput(f"{run} compares kernels of {problem!r}, which it never registered")
        # What may be prescribed depends on the pool, and says nothing about a comparison.
        pair = Compared(replace(declared, prescriptions=()), contract, left, right)
        known = self.pairs.setdefault(pair.name, pair)
        if known != pair:
            raise BadInput(f"{run}: {pair.name} is registered with two sizes, limits or sources in one ledger")
        return pair.name

    def _registered(self, run: str) -> RunRegistered:
        if run not in self._runs:
            raise BadInput(f"{run} measures before it is registered: run gpusolver replay on this ledger")
        return self._runs[run]

    def _state(
        self, seq: int, kind: Literal["claim", "comparison", "round"], text: str, run: str, pairs: tuple[str, ...],
        medians: tuple[float, ...], stands: str, identical: int = 0, claim: ClaimRegistered | None = None,
    ) -> None:  # fmt: skip
        self.stated.append(
            StatementDeclared(
                seq=seq, kind=kind, text=text, pairs=pairs, medians=medians, stands=stands, chip=self._chips.get(run, ""),
                identical=identical, at_least=None if claim is None else claim.at_least,
                decimals=None if claim is None else claim.decimals,
            )
        )  # fmt: skip


def _run_of(event: Event) -> str:
    return event.firing.partition("/")[0] if isinstance(event, RoundJudged) else getattr(event, "run", "")


def verdict_of(interval: Interval, margin: float) -> Verdict:
    """The verdict of an interval by a margin alone (replay/FORMAT.md 6.1, step 6 and 7)."""
    if interval.lower > 1 + margin:
        return "FASTER"
    if interval.upper < 1 / (1 + margin):
        return "SLOWER"
    within = interval.lower >= 1 / (1 + margin) and interval.upper <= 1 + margin
    return "SAME" if within else "AMBIGUOUS"


def measurable(view: ExaminationView, pair: str) -> bool:
    """Whether both sides of a registered pair passed their gates here and could be timed."""
    return all(examined.samples is not None for examined in sides(view, pair))


def sides(view: ExaminationView, pair: str) -> list[KernelExamined]:
    """The examined kernels on both sides of a registered pair."""
    registered = view.registration
    assert registered is not None
    declared = next(known for known in registered.pairs if known.name == pair)
    home = view.subject(declared.subject)
    named = [
        subject.name
        for subject in registered.subjects
        if (subject.problem, subject.contract) == (home.problem, home.contract)
        and subject.source in (declared.left, declared.right)
    ]
    return [view.examined[name] for name in named if name in view.examined]


def answers(view: ExaminationView) -> tuple[StatementReproduced, ...]:
    """What the comparisons of a reproduction say of each registered statement, in order."""
    registered, calibration = view.registration, view.calibration
    assert registered is not None and calibration is not None
    stated = registered.statements or ()
    return tuple(_answer(view, statement, calibration.chip.name) for statement in stated)


def _answer(view: ExaminationView, statement: StatementDeclared, chip: str) -> StatementReproduced:
    compared = [entry for name in statement.pairs for entry in view.pairs.get(name, ())]
    unmeasured = tuple(name for name in statement.pairs if not view.pairs.get(name))
    medians = tuple(entry.interval.median for entry in compared if entry.interval is not None)
    whole = not unmeasured and len(medians) == len(compared)
    if statement.kind == "claim":
        held = whole and _stands(statement, medians) == statement.stands
    else:
        held = whole and all(entry.verdict == statement.stands for entry in compared)
    answer: Found = "other chip" if chip != statement.chip else "confirmed" if held else "not confirmed"
    return StatementReproduced(
        run=view.run, statement=statement.seq, answer=answer, medians=medians, unmeasured=unmeasured
    )


def _stands(statement: StatementDeclared, medians: tuple[float, ...]) -> str:
    assert statement.at_least is not None and statement.decimals is not None  # claims have both
    every = (*medians, *(1.0,) * statement.identical)
    upheld = all(reaches(median, statement.at_least, statement.decimals) for median in every)
    return "upheld" if upheld else "not upheld"
