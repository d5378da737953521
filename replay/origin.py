"""The ledger that another one answers from or reproduces: is it the one that was named, and was nothing left out? Never checks it for itself.

What the first ledger is worth its own verification says; here its rows are hashed again, and its statements listed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ..events.model import (
    ClaimStated,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    HeadToHead,
    KernelExamined,
    Origin,
    PairCompared,
    ProblemDeclared,
    RoundJudged,
    RunRegistered,
    Statistics,
)
from ..events.reader import LedgerReader
from .findings import Findings
from .integrity import scan
from .objective import by_time
from .reproduced import statements_of
from .runs import is_examination

Sides = tuple[str, str, str, str]
"""Problem (its `mark`), contract, left and right source."""


class Named(msgspec.Struct, frozen=True):
    """One place where a ledger names its origin: a recorded run, or (with its registration and samples) a reproduction."""

    seq: int
    name: str
    origin: Origin
    reproduction: ExaminationRegistered | None = None
    samples: tuple[tuple[int, str], ...] = ()


class Stated(msgspec.Struct, frozen=True):
    """What an event of the first ledger states, by the rules of FORMAT.md 7."""

    kind: str
    stands: str
    sides: tuple[Sides, ...]
    medians: tuple[float, ...]
    chip: str
    identical: int = 0
    at_least: float | None = None
    decimals: int | None = None


class First:
    """The first ledger read once: its hashes by seq, its statements, and every artifact name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        own = Findings()
        with LedgerReader(path) as reader:
            self.hashes = [row.hash for row in reader.rows()]
            scanned = scan(reader.rows(), own)
            self.artifacts = {row.digest for row in reader.artifact_rows()}
        self.faults = len(own.all)
        items = [item for stream, kept in scanned.streams.items() if not is_examination(stream) for item in kept]
        self.statements = stated(sorted(items, key=lambda item: item[0]))


def check_origins(named: list[Named], path: str | os.PathLike[str], findings: Findings) -> list[str]:
    """Every origin that a ledger names against the file that is said to be it; notes for people."""
    first = First(path)
    notes: list[str] = []
    if first.faults:
        findings.add(
            0, "origin", "an origin whose chain holds", f"{first.faults} findings: gpusolver replay names them"
        )
    if not named:
        findings.add(0, "origin", "a recorded run or a reproduction, which names an origin", "none")
    for place in named:
        at, head = place.origin.events, place.origin.head
        found = first.hashes[at - 1] if 1 <= at <= len(first.hashes) else f"{len(first.hashes)} events"
        if not findings.expect(place.seq, "origin", head, found, f"hash of event {at}"):
            continue
        notes.append(f"{place.name}: its origin is the ledger that was given, as it was at event {at}")
        if place.reproduction is not None:
            notes += _check_statements(place, place.reproduction, first, findings)
            for seq, digest in place.samples:
                if digest in first.artifacts:
                    findings.add(seq, "samples", "a measurement of its own", f"samples of the origin: {digest}")
    return notes


def _check_statements(place: Named, registered: ExaminationRegistered, first: First, findings: Findings) -> list[str]:
    """Each registered statement as the first ledger makes it; of a kind that is asked, all."""
    subjects = {subject.name: subject for subject in registered.subjects}
    pairs: dict[str, Sides] = {}
    for pair in registered.pairs:
        home = subjects.get(pair.subject)
        if home is not None:
            pairs[pair.name] = (mark(home.problem), home.contract, pair.left, pair.right)
    asked = statements_of(registered)
    for statement in asked:
        due = first.statements.get(statement.seq)
        found = Stated(
            statement.kind, statement.stands, tuple(pairs[name] for name in statement.pairs if name in pairs),
            statement.medians, statement.chip, statement.identical, statement.at_least, statement.decimals,
        )  # fmt: skip
        _compare(place.seq, statement.seq, due, found, findings)
    kinds, seqs = {statement.kind for statement in asked}, {statement.seq for statement in asked}
    left_out, later = Counter[str](), Counter[str]()
    for seq, due in first.statements.items():
        if seq in seqs:
            continue
        if seq > place.origin.events:
            later[due.kind] += 1
        elif due.kind in kinds:
            findings.add(
                place.seq, "statement", f"event {seq} of the origin, a {due.kind}, asked like the others", "left out"
            )
        else:
            left_out[due.kind] += 1
    notes = [f"{place.name}: asks none of the origin's {number} {kind}s" for kind, number in left_out.items()]
    if later:
        told = ", ".join(f"{number} {kind}{'' if number == 1 else 's'}" for kind, number in sorted(later.items()))
        notes.append(
            f"{place.name}: the origin states more behind event {place.origin.events}, which is not asked: {told}"
        )
    return notes


def _compare(at: int, seq: int, due: Stated | None, found: Stated, findings: Findings) -> None:
    if due is None:
        findings.add(at, "statement", f"event {seq} of the origin: one that states something", found.kind)
        return
    for field in Stated.__struct_fields__:
        findings.expect(
            at, "statement", getattr(due, field), getattr(found, field), f"event {seq} of the origin: {field}"
        )


def stated(items: Iterable[tuple[int, Event]]) -> dict[int, Stated]:
    """What a ledger's runs state, by seq: answered claims, comparisons with a verdict, rounds that were FASTER."""
    runs: dict[str, _Run] = {}
    found: dict[int, Stated] = {}
    for seq, event in items:
        if isinstance(event, RunRegistered) and by_time(event.statistics):
            runs[event.run] = _Run(event)
        name = event.firing.split("/")[0] if isinstance(event, RoundJudged) else getattr(event, "run", "")
        said = runs[name].take(event) if name in runs else None
        if said is not None:
            found[seq] = said
    return found


def mark(problem: ProblemDeclared) -> str:
    """A problem as registered, but for what may be prescribed, which depends on the pool and says nothing of a comparison."""
    registered = msgspec.json.encode(replace(problem, prescriptions=()), order="deterministic")
    return f"{problem.name} {sha256(registered).hexdigest()[:16]}"


class _Run:
    """One run of the first ledger, as far as it was read."""

    def __init__(self, registered: RunRegistered) -> None:
        self._registered, self._chip = registered, ""
        self._problems = {problem.name: mark(problem) for problem in registered.problems}
        self._compared: list[HeadToHead] = []

    def take(self, event: Event) -> Stated | None:
        """What the event states, if anything."""
        match event:
            case DeviceCalibrated():
                self._chip = event.chip.name
            case RoundJudged() if event.verdict == "FASTER" and event.interval is not None:
                cell = event.cell
                sides = self._sides(cell.problem, cell.contract, event.incumbent, event.candidate)
                return Stated("round", "FASTER", (sides,), (event.interval.median,), self._chip)
            case HeadToHead():
                return self._comparison(event)
            case ClaimStated() if event.answer != "unanswerable":
                return self._claim(event)
            case _:
                pass
        return None

    def _sides(self, problem: str, contract: str, left: str, right: str) -> Sides:
        return self._problems.get(problem, ""), contract, left, right

    def _of(self, event: HeadToHead) -> Sides:
        return self._sides(event.problem, event.contract, event.left, event.right)

    def _comparison(self, event: HeadToHead) -> Stated | None:
        if event.outcome == "identical" or (event.outcome == "measured" and event.interval is not None):
            self._compared.append(event)
        stands = _stands(event, self._registered.statistics)
        if stands is None or event.interval is None:
            return None
        return Stated("comparison", stands, (self._of(event),), (event.interval.median,), self._chip)

    def _claim(self, event: ClaimStated) -> Stated | None:
        """The pairs of the comparisons that answered it: of each planned repetition the first."""
        claim = next((claim for claim in self._registered.claims if claim.claim == event.claim), None)
        if claim is None:
            return None
        scope = (claim.problem, claim.contract, claim.pool)
        planned = {c.repetition for c in self._registered.plan if (c.problem, c.contract, c.pool) == scope}
        counted: dict[int, HeadToHead] = {}
        for one in self._compared:
            where = (one.problem, one.contract, one.pool, one.comparison)
            if where == (*scope, claim.comparison) and one.repetition in planned:
                counted.setdefault(one.repetition, one)
        measured = [one for _, one in sorted(counted.items()) if one.outcome == "measured"]
        pairs = tuple(dict.fromkeys(map(self._of, measured)))
        if not pairs:
            return None
        identical = len(counted) - len(measured)
        return Stated(
            "claim", event.answer, pairs, event.medians, self._chip, identical, claim.at_least, claim.decimals
        )


def _stands(event: HeadToHead, statistics: Statistics) -> str | None:
    """The verdict of a comparison by the registered margin alone; None where it decides nothing."""
    if event.outcome != "measured" or event.interval is None:
        return None
    lower, upper, margin = event.interval.lower, event.interval.upper, statistics.margin
    if lower > 1 + margin:
        return "FASTER"
    if upper < 1 / (1 + margin):
        return "SLOWER"
    return "SAME" if lower >= 1 / (1 + margin) and upper <= 1 + margin else None


def samples_of(body: Iterable[tuple[int, Event]]) -> tuple[tuple[int, str], ...]:
    """The samples that a reproduction's events name: (seq, digest)."""
    return tuple(
        (seq, event.samples)
        for seq, event in body
        if isinstance(event, (KernelExamined, PairCompared)) and event.samples is not None
    )
