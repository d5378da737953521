"""What a ledger adds up to, as named fields: registered rules, evidence, rounds, ends, claims, figures. Never re-derives.

The names and fields are the shape in which another program's projections are compared with these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UnsetType

from ..events.errors import BadInput
from ..events.model import Rule
from .exams import ExamView
from .findings import as_text
from .views import RoundRow, RuleRow, RunView

Plain = str | int | float | bool | None | tuple[str | float, ...]
Fields = dict[str, Plain]
Projection = dict[str, Fields]


class Difference(msgspec.Struct, frozen=True):
    """One named thing on both sides, None where a side has none; `fields` are those that differ."""

    what: str
    left: str | None
    right: str | None
    fields: tuple[str, ...] = ()


def project(runs: Iterable[RunView], examinations: Iterable[ExamView]) -> Projection:
    """Every projected value under a name, in order."""
    found: Projection = {}
    for run in runs:
        found[f"{run.run} end"] = {"reason": run.stopped or "unfinished"}
        found |= {f"{run.run} rule {rule.name} version {rule.version}": definition(rule) for rule in run.table}
        found |= {f"{row.cell} rule {row.rule} version {row.version}": _evidence(row) for row in run.rules}
        found |= {f"{row.cell} round {row.round}": _round(row) for row in run.rounds}
        found |= {f"{cell} end": {"reason": end} for cell, end in run.ends.items()}
        for claim in run.claims:
            found[f"{run.run} claim {claim.claim}"] = {"answer": claim.stated, "medians": claim.stated_medians}
    for exam in examinations:
        found |= _examination(exam)
    return found


def definition(rule: Rule) -> Fields:
    """A rule as it was registered, but for what is said to people about it."""
    gain, share = rule.gain, rule.gain.share
    parts = (gain.form, gain.signal, gain.over, gain.under, None if isinstance(share, UnsetType) else share)
    return {
        "clauses": tuple(f"{c.signal} {c.op} {c.threshold!r}" for c in rule.clauses),
        "prescription": rule.prescription or ("stop" if rule.stop else None),
        "tier": rule.tier,
        "position": rule.position,
        "guards": tuple(f"{g.over} / {g.under} >= {g.at_least!r}" for g in rule.guards),
        "contracts": rule.contracts,
        "gain": f"{' '.join(part for part in parts if part)}, at most {gain.cap!r}",
    }


def _evidence(row: RuleRow) -> Fields:
    return {
        "fired": row.fired,
        "successes": row.successes,
        "failures": row.failures,
        "confidence": row.confidence,
        "retired": row.retired,
        "promoted": row.promoted,
    }


def _round(row: RoundRow) -> Fields:
    return {
        "rule": row.rule,
        "verdict": row.verdict,
        "reason": row.reason,
        "credit": row.credit,
        "lower": row.lower,
        "median": row.median,
        "upper": row.upper,
        "incumbent": row.next_incumbent,
    }


def _examination(exam: ExamView) -> Projection:
    """Its end, what became of each subject, and every figure as stated."""
    found: Projection = {f"{exam.exam} end": {"reason": exam.stopped or "unfinished"}}
    for subject in exam.subjects:
        found[f"{exam.exam} subject {subject.subject}"] = {"outcome": subject.outcome, "fires": subject.fires}
    for name, value in exam.figures.items():
        found[f"{exam.exam} figure {name}"] = {"value": value}
    return found


def received(content: object) -> Projection:
    """Another program's projection as read from JSON. Raises BadInput where it is not of this shape."""
    try:
        return msgspec.convert(content, Projection)
    except msgspec.ValidationError as error:
        raise BadInput(f"projections of the other side: expected names with fields, found {error}") from error


def differences(left: Projection, right: Projection) -> list[Difference]:
    """Every name whose fields differ, in the order of the left side, then of the right."""
    names = dict.fromkeys([*left, *right])
    return [_difference(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]


def _difference(what: str, left: Fields | None, right: Fields | None) -> Difference:
    fields = fields_apart(left, right) if left is not None and right is not None else ()
    return Difference(what, _text(left), _text(right), fields)


def fields_apart(left: Mapping[str, object], right: Mapping[str, object]) -> tuple[str, ...]:
    """The names whose values differ, or that one side lacks."""
    return tuple(name for name in dict.fromkeys([*left, *right]) if left.get(name) != right.get(name))


def _text(fields: Fields | None) -> str | None:
    if fields is None:
        return None
    said = ((name, value) for name, value in fields.items() if value is not None and value is not False and value != ())
    return as_text(", ".join(f"{name} {value_text(value)}".removesuffix(" True") for name, value in said))


def value_text(value: object) -> str:
    """A value as people write it: digests by their first 12 digits, lists by comma."""
    if isinstance(value, tuple):
        return ", ".join(map(value_text, value))
    if isinstance(value, str):
        return value[:12] if len(value) == 64 and value.isalnum() else value
    return repr(value)
