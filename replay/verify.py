"""The whole verification of a ledger, from its file to its claims. Never raises on a bad ledger, only on an unreadable one."""

from __future__ import annotations

import os
from itertools import takewhile

import msgspec

from ..events.reader import LedgerReader
from .artifacts import Shelf
from .exams import ExamView
from .findings import MERIT, Finding, Findings, encodable
from .integrity import GoesOn, scan, without_collector
from .origin import check_origins
from .parallel import spread
from .seal import Anchors, Sealing, SealView, Trust, check_file, trust
from .verification import Verification
from .views import RunView
from .whole_file import LARGEST_TOTAL, check_artifacts, check_indexes, check_schema, check_schema_cells

MOST_LISTED = 20_000


class Report(msgspec.Struct, frozen=True):
    """A verification's outcome; `notes` say what was not, or could not be, checked.

    `provenance`: is this the whole record, and does anything outside of it vouch for it; `merit`: does what it says follow from what
    was measured. A ledger may be whole and wrong, or right and of unknown origin.
    """

    path: str
    deep: bool
    head_seq: int
    head: str
    counts: dict[str, int]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    runs: tuple[RunView, ...]
    examinations: tuple[ExamView, ...] = ()
    root: str = ""
    seals: tuple[SealView, ...] = ()
    provenance: str = ""
    merit: str = ""


@without_collector()
def verify(
    path: str | os.PathLike[str],
    deep: bool,
    *,
    head: str | None = None,
    upto: int | None = None,
    anchors: Anchors | None = None,
    origin: str | os.PathLike[str] | None = None,
    listed: int | None = MOST_LISTED,
    jobs: int = 1,
) -> Report:
    """Check a ledger: the file, chain, artifacts and folds; with `deep` also re-derive everything that follows from them.

    `head` is the hash that its last event must have; `upto` reads the first events only; `anchors` were kept elsewhere;
    `origin` is the file of the ledger that its runs answer from, or that it reproduces.
    The report lists the rounds of the first runs, up to `listed` (None: all). With `jobs` a check of events alone is spread over so
    many processes, and says the same; whatever they find wrong is looked at again in this one.
    Raises UnreadableLedger; BadInput where an anchor is none.
    """
    asked = _Asked(path, deep, head, upto, trust(anchors or Anchors()), origin, listed)
    if jobs > 1 and not deep and upto is None:
        report = _verified(asked, jobs=jobs)
        if report is not None and not report.findings:
            return report
    try:
        report = _verified(asked)
    except GoesOn:
        report = _verified(asked, whole=True)
    assert report is not None  # one process reads every ledger
    return report


class _Asked(msgspec.Struct, frozen=True):
    """What `verify` was asked."""

    path: str | os.PathLike[str]
    deep: bool
    head: str | None
    upto: int | None
    trusted: Trust
    origin: str | os.PathLike[str] | None
    listed: int | None


def _verified(asked: _Asked, *, whole: bool = False, jobs: int = 1) -> Report | None:
    """The verification; but for `whole`, runs are checked and let go as they end. None where it cannot be spread over `jobs`."""
    path, deep, head, upto = asked.path, asked.deep, asked.head, asked.upto
    trusted, origin, findings = asked.trusted, asked.origin, Findings()
    check_file(path, trusted, findings)
    with LedgerReader(path) as reader:
        check_schema(((o[0], o[1], o[2]) for o in reader.schema_objects()), findings)
        if not any(finding.kind == "schema object" for finding in findings.all):
            check_schema_cells(path, findings)
        rows = reader.rows() if upto is None else takewhile(lambda row: row.seq <= upto, reader.rows())
        if deep:
            check_indexes(path, findings)
        sound, unread = check_artifacts(reader.artifact_rows(), findings)
        verification = Verification(
            Shelf(reader.artifact, sound), sound, deep, findings, has_origin=origin is not None, listed=asked.listed
        )
        if jobs > 1:
            parts = spread(reader, jobs, sound, trusted.sizes(), origin is not None, asked.listed)
            joined = verification.kept.join(parts, trusted.sizes())
            if joined is None:
                return None
            scanned = joined
        else:
            scanned = scan(rows, findings, sizes=trusted.sizes(), ended=None if whole else verification.take)
        views, exams = verification.finish(scanned)
        sealing = Sealing(scanned, trusted, findings)
        notes = [*reader.notices, *verification.notes(), *sealing.notes(head is not None)]
    if origin is not None:
        notes += check_origins(verification.kept.origins, origin, findings)
    if scanned.back.times:
        back = scanned.back
        notes.append(
            f"the clock went back {back.times} times, first at event {back.first}: times are facts for people, order is by seq"
        )
    if unread:
        notes.append(f"{unread} artifacts were not read: all together are over {LARGEST_TOTAL} bytes")
    if head is not None:
        findings.expect(scanned.last, "head", head.lower(), scanned.head)
    counts = {
        "events": scanned.last if upto is None else min(upto, scanned.last),
        "artifacts": len(sound),
        "runs": len(views),
        "cells": verification.kept.cells,
        "rounds": verification.kept.rounds,
    }
    if exams:
        counts["examinations"] = len(exams)
    ordered = tuple(sorted(findings.all, key=lambda finding: finding.seq))
    return Report(
        path=encodable(os.fspath(path)),
        deep=deep,
        head_seq=scanned.last,
        head=scanned.head,
        counts=counts,
        findings=ordered,
        notes=tuple(notes),
        runs=views,
        examinations=exams,
        root=scanned.heads.root().hex(),
        seals=tuple(sealing.views),
        provenance=_provenance(ordered, any((head, trusted.checkpoints, trusted.key, trusted.file_digest))),
        merit=_merit(ordered, deep),
    )


def _provenance(findings: tuple[Finding, ...], vouched: bool) -> str:
    faults = sum(finding.kind not in MERIT for finding in findings)
    if faults:
        return f"does not hold: {faults} findings"
    return (
        "holds, by what was kept elsewhere"
        if vouched
        else "holds within the file; nothing kept elsewhere vouches for it"
    )


def _merit(findings: tuple[Finding, ...], deep: bool) -> str:
    faults = sum(finding.kind in MERIT for finding in findings)
    if faults:
        return f"does not hold: {faults} findings"
    return (
        "holds: everything that is said follows from what is recorded as measured"
        if deep
        else "not derived: use --verify"
    )
