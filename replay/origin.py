"""The ledger that another one answers from or reproduces: is it the one that was named, and was nothing left out? Never checks it for itself.

What the first ledger is worth its own verification says; here its rows are hashed again, and its statements listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from ..events.model import (
    ClaimStated,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    HeadToHead,
    KernelExamined,
    Origin,
    PairCompared,
    RoundJudged,
    RunRegistered,
    Statistics,
)
from ..events.reader import LedgerReader
from .findings import Findings
from .integrity import scan
from .reproduced import statements_of
from .runs import is_examination

Sides = tuple[str, str, str, str]
"""Problem (its digest), contract, left and right source."""


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
            pairs[pair.name] = (home.problem.digest, home.contract, pair.left, pair.right)
    asked = statements_of(registered)
    for statement in asked:
        due = first.statements.get(statement.seq)
        found = Stated(
            statement.kind, statement.stands, tuple(pairs[name] for name in statement.pairs if name in pairs),
            statement.medians, statement.chip, statement.identical, statement.at_least, statement.decimals,
        )  # fmt: skip
        _compare(place.seq, statement.seq, due, found, findings)
    kinds, seqs = {statement.kind for statement in asked}, {statement.seq for statement in asked}
    left_out = dict[str, int]()
    for seq, due in first.statements.items():
        if seq in seqs or seq > place.origin.events:
            continue
        if due.kind in kinds:
            findings.add(
                place.seq, "statement", f"event {seq} of the origin, a {due.kind}, asked like the others", "left out"
            )
        else:
            left_out[due.kind] = left_out.get(due.kind, 0) + 1
    return [f"{place.name}: asks none of the origin's {number} {kind}s" for kind, number in left_out.items()]


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
    runs: dict[str, RunRegistered] = {}
    chips: dict[str, str] = {}
    compared: dict[tuple[str, Any], list[HeadToHead]] = {}
    found: dict[int, Stated] = {}

    def sides(run: str, problem: str, *rest: str) -> Sides:
        digests = {known.name: known.digest for known in runs[run].problems} if run in runs else {}
        contract, left, right = rest
        return digests.get(problem, ""), contract, left, right

    for seq, event in items:
        match event:
            case RunRegistered():
                runs[event.run] = event
            case DeviceCalibrated():
                chips[event.run] = event.chip.name
            case RoundJudged() if event.verdict == "FASTER" and event.interval is not None:
                run, cell = event.firing.split("/")[0], event.cell
                pair = sides(run, cell.problem, cell.contract, event.incumbent, event.candidate)
                found[seq] = Stated("round", "FASTER", (pair,), (event.interval.median,), chips.get(run, ""))
            case HeadToHead() if event.outcome == "identical" or event.interval is not None:
                key = (event.run, (event.problem, event.contract, event.pool, event.comparison))
                compared.setdefault(key, []).append(event)
                stands = None if event.run not in runs else _stands(event, runs[event.run].statistics)
                if stands is not None and event.interval is not None:
                    pair = sides(event.run, event.problem, event.contract, event.left, event.right)
                    medians, chip = (event.interval.median,), chips.get(event.run, "")
                    found[seq] = Stated("comparison", stands, (pair,), medians, chip)
            case ClaimStated() if event.answer != "unanswerable" and event.run in runs:
                claim = next((c for c in runs[event.run].claims if c.claim == event.claim), None)
                if claim is None:
                    continue
                key = (event.run, (claim.problem, claim.contract, claim.pool, claim.comparison))
                counted: dict[int, HeadToHead] = {}
                for one in compared.get(key, []):
                    counted.setdefault(one.repetition, one)
                measured = [one for _, one in sorted(counted.items()) if one.interval is not None]
                pairs = tuple(dict.fromkeys(sides(event.run, h.problem, h.contract, h.left, h.right) for h in measured))
                if pairs:
                    found[seq] = Stated(
                        "claim", event.answer, pairs, event.medians, chips.get(event.run, ""),
                        len(counted) - len(measured), claim.at_least, claim.decimals,
                    )  # fmt: skip
            case _:
                pass
    return found


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
