"""Two ledgers, two positions of one, or another program's projections, compared by what they say, and why they parted. Never writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ..events.errors import BadInput
from ..events.rows import Row
from .feeds import apart, medians
from .findings import Finding, as_text, encodable
from .parting import Parted, part
from .projected import Difference, differences, fields_apart, project, received
from .side import Side
from .verify import Report, verify

_MOST_FEEDS = 24


class FirstEvent(msgspec.Struct, frozen=True):
    """The first event whose stream, type or payload differs, the fields that do, and what its samples and signals were."""

    seq: int
    left: str | None
    right: str | None
    fields: tuple[str, ...]
    fed_by: tuple[Difference, ...]


class Diff(msgspec.Struct, frozen=True):
    """How two ledgers differ; `parted` says why, and is None between a ledger and another program's projections."""

    left: str
    right: str
    first_event: FirstEvent | None
    differences: tuple[Difference, ...]
    parted: Parted | None
    left_findings: tuple[Finding, ...]
    right_findings: tuple[Finding, ...]

    @property
    def same(self) -> bool:
        """Whether nothing differs that anything follows from."""
        return self.first_event is None and not self.differences


def diff(left: str, right: str) -> Diff:
    """Compare two ledgers, each a path or `path@N` (the first N events). Raises UnreadableLedger and BadInput."""
    places = position(left), position(right)
    reports = [_report(path, upto) for path, upto in places]
    projections = [project(report.runs, report.examinations) for report in reports]
    with Side(*places[0]) as one, Side(*places[1]) as other:
        event = _first_event(one, other)
        parted = Parted((), 0, ()) if event is None else part(one, other)
    return Diff(
        encodable(left),
        encodable(right),
        event,
        tuple(differences(projections[0], projections[1])),
        parted,
        reports[0].findings,
        reports[1].findings,
    )


def diff_projections(ledger: str, other: str, content: object) -> Diff:
    """Compare a ledger with what another program made of it: `content`, JSON of the shape of `projected.Projection`."""
    report = _report(*position(ledger))
    theirs = received(content)
    found = tuple(differences(project(report.runs, report.examinations), theirs))
    return Diff(encodable(ledger), other, None, found, None, report.findings, ())


def position(name: str) -> tuple[Path, int | None]:
    """Split `path@N`; a file whose own name ends so is taken whole."""
    path, at, number = name.rpartition("@")
    if Path(name).exists() or not at:
        return Path(name), None
    if not (number.isascii() and number.isdecimal() and len(number) < 19 and int(number) > 0):
        raise BadInput(f"{name}: expected a position from 1 after '@', found {number!r}; write ledger.db@120")
    return Path(path), int(number)


def _report(path: Path, upto: int | None) -> Report:
    report = verify(path, deep=False, upto=upto, listed=None)
    if upto is not None and report.counts["events"] < upto:
        raise BadInput(
            f"{path}@{upto}: expected a position up to {report.counts['events']}, the last event; found {upto}"
        )
    return report


def _first_event(left: Side, right: Side) -> FirstEvent | None:
    """The first place where the ledgers part; times and hashes are not compared, nothing follows from them."""
    for one, other in zip_longest(left.rows(), right.rows()):
        if _said(one) != _said(other):
            seq = one.seq if one is not None else other.seq if other is not None else 0
            fields, fed_by = tuple[str, ...](), tuple[Difference, ...]()
            if one is not None and other is not None:
                bodies = _body(one), _body(other)
                fields = fields_apart(*bodies)
                fed_by = tuple(_fed(left, right, *bodies))[:_MOST_FEEDS]
            return FirstEvent(seq, _event(one, fields), _event(other, fields), fields, fed_by)
    return None


def _said(row: Row | None) -> tuple[str, str, bytes] | None:
    return None if row is None else (row.stream, row.type, row.payload)


def _body(row: Row) -> dict[str, Any]:
    """The payload's fields, with stream and type of the row; those alone where it is no JSON object."""
    place: dict[str, Any] = {"stream": row.stream, "type": row.type}
    try:
        found = json.loads(row.payload)
    except (ValueError, RecursionError):
        return place | {"payload": row.payload}
    return found | place if isinstance(found, dict) else place | {"payload": row.payload}


def _fed(left: Side, right: Side, one: dict[str, Any], other: dict[str, Any]) -> Iterator[Difference]:
    """Signals and the samples behind them."""
    signals = [body.get("signals") for body in (one, other)]
    if isinstance(signals[0], dict) and isinstance(signals[1], dict):
        for name in dict.fromkeys([*signals[0], *signals[1]]):
            yield from apart(f"signal {name}", signals[0].get(name), signals[1].get(name))
    digests = [body.get("samples") for body in (one, other)]
    if isinstance(digests[0], str) and isinstance(digests[1], str):
        timed = medians(left, digests[0]), medians(right, digests[1])
        for name in dict.fromkeys([*timed[0], *timed[1]]):
            yield from apart(name, timed[0].get(name), timed[1].get(name))


def _event(row: Row | None, fields: tuple[str, ...]) -> str | None:
    """Place and kind, and of the payload the fields that differ."""
    if row is None:
        return None
    body = _body(row)
    shown = {name: body[name] for name in fields if name in body}
    return as_text(
        f"{row.stream} {row.type} {json.dumps(shown, default=ascii)}" if shown else f"{row.stream} {row.type}"
    )
