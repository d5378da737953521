"""Two ledgers, or two positions of one, compared by what they say: tables, rounds, claims, and the first event that differs."""

from __future__ import annotations

from itertools import islice, zip_longest
from pathlib import Path

import msgspec

from ..events.errors import BadInput
from ..events.reader import LedgerReader
from ..events.rows import Row
from .exams import ExamView
from .findings import Finding, as_text, encodable
from .verify import Report, verify
from .views import RoundRow, RuleRow, RunView


class Difference(msgspec.Struct, frozen=True):
    """One projected value on both sides; None where a side has none."""

    what: str
    left: str | None
    right: str | None


class Diff(msgspec.Struct, frozen=True):
    """How two ledgers differ. `first_event` names the first event whose stream, type or payload differs."""

    left: str
    right: str
    first_event: Difference | None
    differences: tuple[Difference, ...]
    left_findings: tuple[Finding, ...]
    right_findings: tuple[Finding, ...]


def diff(left: str, right: str) -> Diff:
    """Compare two ledgers, each a path or `path@N` (the first N events). Raises UnreadableLedger and BadInput."""
    (a, a_upto), (b, b_upto) = position(left), position(right)
    report_a, report_b = _report(a, a_upto), _report(b, b_upto)
    return Diff(
        encodable(left),
        encodable(right),
        _first_event(a, a_upto, b, b_upto),
        tuple(_differences(project(report_a), project(report_b))),
        report_a.findings,
        report_b.findings,
    )


def position(name: str) -> tuple[Path, int | None]:
    """Split `path@N`; a file whose own name ends so is taken whole."""
    path, at, number = name.rpartition("@")
    if Path(name).exists() or not at:
        return Path(name), None
    if not (number.isascii() and number.isdecimal() and len(number) < 19 and int(number) > 0):
        raise BadInput(f"{name}: expected a position from 1 after '@', found {number!r}; write ledger.db@120")
    return Path(path), int(number)


def _report(path: Path, upto: int | None) -> Report:
    report = verify(path, deep=False, upto=upto)
    if upto is not None and report.counts["events"] < upto:
        raise BadInput(
            f"{path}@{upto}: expected a position up to {report.counts['events']}, the last event; found {upto}"
        )
    return report


def project(report: Report) -> dict[str, str]:
    """Every projected value of a ledger under a name, in order."""
    found: dict[str, str] = {}
    for run in report.runs:
        found[f"{run.run} end"] = run.stopped or "unfinished"
        for row in run.rules:
            found[f"{row.cell} rule {row.rule} version {row.version}"] = _rule(row)
        for judged in run.rounds:
            found[f"{judged.cell} round {judged.round}"] = _round(judged)
        found |= {f"{cell} end": end for cell, end in run.ends.items()}
        found |= _claims(run)
    for exam in report.examinations:
        found |= _examination(exam)
    return found


def _examination(exam: ExamView) -> dict[str, str]:
    """Its end, what became of each subject, and every figure as stated."""
    found = {f"{exam.exam} end": exam.stopped or "unfinished"}
    for subject in exam.subjects:
        found[f"{exam.exam} subject {subject.subject}"] = (
            f"{subject.outcome}, fires {', '.join(subject.fires) or 'none'}"
        )
    return found | {f"{exam.exam} figure {name}": repr(value) for name, value in exam.figures.items()}


def _claims(run: RunView) -> dict[str, str]:
    return {
        f"{run.run} claim {claim.claim}": f"{claim.stated} {' '.join(map(repr, claim.stated_medians))}".rstrip()
        for claim in run.claims
    }


def _rule(row: RuleRow) -> str:
    evidence = f"fired {row.fired}, {row.successes} successes, {row.failures} failures, confidence {row.confidence!r}"
    retired = "".join(f", retired in {context}" for context in row.retired)
    return f"{evidence}{retired}{', promoted' if row.promoted else ''}"


def _round(row: RoundRow) -> str:
    ratio = "" if row.median is None else f" {row.median!r} [{row.lower!r}, {row.upper!r}]"
    return f"{row.rule} {row.verdict} ({row.reason}){ratio}, {row.credit}, then {row.next_incumbent[:12]}"


def _differences(left: dict[str, str], right: dict[str, str]) -> list[Difference]:
    names = dict.fromkeys([*left, *right])
    return [Difference(n, left.get(n), right.get(n)) for n in names if left.get(n) != right.get(n)]


def _first_event(a: Path, a_upto: int | None, b: Path, b_upto: int | None) -> Difference | None:
    """The first place where the ledgers part; times and hashes are not compared, nothing follows from them."""
    with LedgerReader(a) as left, LedgerReader(b) as right:
        pairs = zip_longest(islice(left.rows(), a_upto), islice(right.rows(), b_upto))
        for one, other in pairs:
            if (
                one is None
                or other is None
                or (one.stream, one.type, one.payload) != (other.stream, other.type, other.payload)
            ):
                seq = one.seq if one is not None else other.seq if other is not None else 0
                return Difference(f"event {seq}", _event(one), _event(other))
    return None


def _event(row: Row | None) -> str | None:
    return (
        None if row is None else as_text(f"{row.stream} {row.type} {row.payload.decode('utf-8', 'backslashreplace')}")
    )
