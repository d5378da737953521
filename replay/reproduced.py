"""A reproduction's statements: what may be registered, and what its comparisons say of each (FORMAT.md 7). Never reads a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal

import msgspec
from msgspec import UnsetType

from ..events.model import (
    ExaminationRegistered,
    Origin,
    PairCompared,
    PairDeclared,
    StatementDeclared,
    StatementReproduced,
    SubjectDeclared,
)
from .claims import units
from .findings import Findings
from .registered import MOST_DECIMALS, Demand

ANSWERS = ("confirmed", "not confirmed", "other chip")
VERDICTS = {"comparison": ("FASTER", "SLOWER", "SAME"), "round": ("FASTER",), "claim": ("upheld", "not upheld")}
_HEAD = re.compile(r"[0-9a-f]{64}")


class StatementRow(msgspec.Struct, frozen=True):
    """One statement of the origin beside what became of it, as recorded; no answer while the reproduction is unfinished."""

    seq: int
    kind: str
    text: str
    stands: str
    chip: str
    stated: tuple[float, ...]
    measured: tuple[float, ...]
    answer: str | None


def origin_of(registered: ExaminationRegistered) -> Origin | None:
    """The ledger that an examination takes its kernels from; None where it is no reproduction."""
    return None if isinstance(registered.origin, UnsetType) else registered.origin


def statements_of(registered: ExaminationRegistered) -> tuple[StatementDeclared, ...]:
    """The statements that are asked again; none where it is no reproduction."""
    return () if isinstance(registered.statements, UnsetType) else registered.statements


# --- what may be registered ---


def demands(registered: ExaminationRegistered) -> Iterator[Demand]:
    """What holds of a reproduction's origin, statements and pairs."""
    origin, stated = origin_of(registered), statements_of(registered)
    both = isinstance(registered.origin, UnsetType) == isinstance(registered.statements, UnsetType)
    yield "an origin and statements, or neither", (origin, len(stated)), both
    if origin is None:
        return
    sound = _HEAD.fullmatch(origin.head) is not None and origin.events >= 1
    yield "an origin's head in 64 hex digits and its number of events", origin, sound
    seqs = [statement.seq for statement in stated]
    ascending = seqs == sorted(set(seqs)) and bool(seqs) and seqs[0] >= 1 and seqs[-1] <= origin.events
    yield "statements by ascending seq of the origin's events, at least one", seqs, ascending
    named = {name for statement in stated for name in statement.pairs}
    pairs = {pair.name for pair in registered.pairs}
    yield "pairs that the statements rest on, and no others", sorted(named ^ pairs), named == pairs
    for statement in stated:
        yield from _statement(statement)
    every = sides_of(registered)
    for pair in registered.pairs:
        sides = every[pair.name]
        words = f"pair {pair.name}: its subject is the left side, and each side one subject of its problem and contract"
        yield words, [side and side.name for side in sides], None not in sides and _is(sides[0], pair.subject)


def _is(side: SubjectDeclared | None, name: str) -> bool:
    return side is not None and side.name == name


def _statement(statement: StatementDeclared) -> Iterator[Demand]:
    name, claim = f"statement {statement.seq}", statement.kind == "claim"
    yield (
        f"{name}: stands one of {VERDICTS[statement.kind]}",
        statement.stands,
        statement.stands in VERDICTS[statement.kind],
    )
    once = bool(statement.pairs) and len(set(statement.pairs)) == len(statement.pairs)
    yield f"{name}: each pair once, at least one", statement.pairs, once
    if claim:
        at_least, decimals = statement.at_least, statement.decimals
        bound = at_least is not None and at_least > 0 and isfinite(at_least)
        yield f"{name}: a bound over 0", at_least, bound
        yield f"{name}: decimals from 0 to 6", decimals, decimals is not None and 0 <= decimals <= MOST_DECIMALS
        yield f"{name}: identical from 0", statement.identical, statement.identical >= 0
    else:
        plain = (statement.at_least, statement.decimals, statement.identical) == (None, None, 0)
        yield f"{name}: no bound and nothing identical but of a claim", statement, plain
        yield f"{name}: one pair and one median", statement, len(statement.pairs) == len(statement.medians) == 1


def sides_of(registered: ExaminationRegistered) -> dict[str, tuple[SubjectDeclared | None, SubjectDeclared | None]]:
    """By pair, the subjects of its left and right source, of the problem and contract of its subject; None where there is not one."""
    subjects: dict[tuple[str, str, str], list[SubjectDeclared]] = {}
    homes: dict[str, SubjectDeclared] = {}
    for subject in registered.subjects:
        subjects.setdefault((subject.problem.digest, subject.contract, subject.source), []).append(subject)
        homes.setdefault(subject.name, subject)

    def side(pair: PairDeclared, source: str) -> SubjectDeclared | None:
        home = homes.get(pair.subject)
        near = [] if home is None else subjects.get((home.problem.digest, home.contract, source), [])
        return near[0] if len(near) == 1 and home is not None and near[0].problem == home.problem else None

    return {pair.name: (side(pair, pair.left), side(pair, pair.right)) for pair in registered.pairs}


# --- what follows ---


def answer(
    run: str, statement: StatementDeclared, chip: str, compared: Mapping[str, Sequence[PairCompared]]
) -> StatementReproduced:
    """What the comparisons say of a statement, on a chip of that name."""
    entries = [entry for name in statement.pairs for entry in compared.get(name, ())]
    medians = tuple(entry.interval.median for entry in entries if entry.interval is not None)
    unmeasured = tuple(name for name in statement.pairs if not compared.get(name))
    found: Literal["confirmed", "not confirmed", "other chip"] = "not confirmed"
    if chip != statement.chip:
        found = "other chip"
    elif not unmeasured and len(medians) == len(entries) and _holds(statement, entries, medians):
        found = "confirmed"
    return StatementReproduced(run=run, statement=statement.seq, answer=found, medians=medians, unmeasured=unmeasured)


def _holds(statement: StatementDeclared, entries: list[PairCompared], medians: tuple[float, ...]) -> bool:
    if statement.kind != "claim":
        return {entry.verdict for entry in entries} == {statement.stands}
    if statement.at_least is None or statement.decimals is None:
        raise ValueError(f"claim {statement.seq} without a bound")
    ratios = [*medians, *([1.0] if statement.identical else [])]
    bound = units(statement.at_least, statement.decimals)
    return (min(units(ratio, statement.decimals) for ratio in ratios) >= bound) == (statement.stands == "upheld")


def check_answers(
    registered: ExaminationRegistered,
    chip: str,
    compared: Mapping[str, Sequence[PairCompared]],
    recorded: Sequence[tuple[int, StatementReproduced]],
    findings: Findings,
) -> None:
    """Each recorded answer is the one that follows."""
    stated = {statement.seq: statement for statement in statements_of(registered)}
    for seq, event in recorded:
        with findings.derivation(seq, f"statement {event.statement}"):
            if event.statement in stated:
                due = answer(registered.run, stated[event.statement], chip, compared)
                for field in ("answer", "medians", "unmeasured"):
                    findings.expect(seq, "statement", getattr(due, field), getattr(event, field), field)


def check_complete(
    registered: ExaminationRegistered | None,
    recorded: Sequence[tuple[int, StatementReproduced]],
    ended: int | None,
    findings: Findings,
) -> None:
    """At the end each registered statement has one answer, in order, and there are no others."""
    due = [] if registered is None else [statement.seq for statement in statements_of(registered)]
    given = [event.statement for _, event in recorded]
    if recorded and ended is None:
        findings.add(recorded[0][0], "order of events", "ExaminationStated and RunStopped after the answers", "absent")
    if given != due and (given or ended is not None):
        findings.add(
            recorded[0][0] if recorded else ended or 0, "statement", f"one answer each, in order, of {due}", given
        )


def figures(recorded: Sequence[tuple[int, StatementReproduced]]) -> dict[str, float]:
    """The number of statements by answer."""
    given = [event.answer for _, event in recorded]
    return {f"statements/{answer}": float(given.count(answer)) for answer in ANSWERS}  # type: ignore[arg-type]


def rows(
    registered: ExaminationRegistered | None, recorded: Sequence[tuple[int, StatementReproduced]]
) -> tuple[StatementRow, ...]:
    """Statements for people."""
    answers = {event.statement: event for _, event in recorded}
    return tuple(
        _row(statement, answers.get(statement.seq))
        for statement in (() if registered is None else statements_of(registered))
    )


def _row(stated: StatementDeclared, found: StatementReproduced | None) -> StatementRow:
    measured, answered = ((), None) if found is None else (found.medians, found.answer)
    return StatementRow(
        stated.seq, stated.kind, stated.text, stated.stands, stated.chip, stated.medians, measured, answered
    )
