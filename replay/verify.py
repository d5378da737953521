"""The whole verification of a ledger, from its file to its claims. Never raises on a bad ledger, only on an unreadable one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from ..events.reader import LedgerReader
from .exams import ExamView
from .experience import check_experience
from .findings import MERIT, Finding, Findings, encodable
from .integrity import GoesOn, Scanned, scan, without_collector
from .origin import check_origins
from .parallel import spread
from .seal import Anchors, Sealing, SealView, Trust, check_file, trust
from .shelf import Shelf
from .verification import Verification
from .views import RunView
from .whole_file import LARGEST_TOTAL, check_artifacts, check_indexes, check_schema, check_schema_cells
from .withheld import Withheld, excuse, fits

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
    experience: Sequence[str] = (),
    withheld: Withheld | None = None,
    listed: int | None = MOST_LISTED,
    jobs: int = 1,
) -> Report:
    """Check a ledger: the file, chain, artifacts and folds; with `deep` also re-derive everything that follows from them.

    `head` is the hash that its last event must have; `upto` reads the first events only; `anchors` were kept elsewhere;
    `origin` is the file of the ledger that its runs answer from, or that it reproduces; `experience` are those that its runs may have
    learnt from, which only `deep` asks for, and only of a whole ledger; `withheld` lists texts that its holder keeps back.
    The report lists the rounds of the first runs, up to `listed` (None: all). With `jobs` a check of events alone is spread over so
    many processes, and says the same; whatever they find wrong is looked at again in this one.
    Raises UnreadableLedger; BadInput where an anchor is none.
    """
    asked = _Asked(path, deep, head, upto, trust(anchors or Anchors()), origin, listed, experience, withheld)
    if jobs > 1 and not deep and upto is None and withheld is None:
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
    experience: Sequence[str]
    withheld: Withheld | None


class _Read(msgspec.Struct, frozen=True):
    """What reading the file gave: the scan, its verification, the views, the seals, notes in order, artifacts read and not."""

    scanned: Scanned
    verification: Verification
    views: tuple[tuple[RunView, ...], tuple[ExamView, ...]]
    sealing: Sealing
    notes: list[str]
    sound: int
    unread: int


def _verified(asked: _Asked, *, whole: bool = False, jobs: int = 1) -> Report | None:
    """The verification; but for `whole`, runs are checked and let go as they end. None where it cannot be spread over `jobs`."""
    findings = Findings()
    check_file(asked.path, asked.trusted, findings)
    with LedgerReader(asked.path) as reader:
        read = _read(reader, asked, findings, whole=whole, jobs=jobs)
    if read is None:
        return None
    notes = [*read.notes, *_beside(asked, read, findings)]
    if asked.head is not None:
        findings.expect(read.scanned.last, "head", asked.head.lower(), read.scanned.head)
    ordered = tuple(sorted(findings.all, key=lambda finding: finding.seq))
    if asked.withheld is not None:
        fits(asked.withheld, read.scanned.head, read.verification.kept.originals)
        ordered, note = excuse(ordered, asked.withheld)
        notes.append(note)
    return _report(asked, read, notes, ordered)


def _read(reader: LedgerReader, asked: _Asked, findings: Findings, *, whole: bool, jobs: int) -> _Read | None:
    """All that the file itself shows."""
    _check_schema(reader, asked, findings)
    sound, unread = check_artifacts(reader.artifact_rows(), findings)
    has_origin, sizes = asked.origin is not None, asked.trusted.sizes()
    shelf = Shelf(reader.artifact, sound)
    verification = Verification(shelf, sound, asked.deep, findings, has_origin=has_origin, listed=asked.listed)
    if jobs > 1:
        joined = verification.kept.join(spread(reader, jobs, sound, sizes, has_origin, asked.listed), sizes)
        if joined is None:
            return None
        scanned = joined
    else:
        upto = asked.upto
        rows = reader.rows() if upto is None else takewhile(lambda row: row.seq <= upto, reader.rows())
        scanned = scan(rows, findings, sizes=sizes, ended=None if whole else verification.take)
    views = verification.finish(scanned)
    sealing = Sealing(scanned, asked.trusted, findings)
    notes = [*reader.notices, *verification.notes(), *sealing.notes(asked.head is not None)]
    return _Read(scanned, verification, views, sealing, notes, len(sound), unread)


def _check_schema(reader: LedgerReader, asked: _Asked, findings: Findings) -> None:
    check_schema(((o[0], o[1], o[2]) for o in reader.schema_objects()), findings)
    if not any(finding.kind == "schema object" for finding in findings.all):
        check_schema_cells(asked.path, findings)
    if asked.deep:
        check_indexes(asked.path, findings)


def _beside(asked: _Asked, read: _Read, findings: Findings) -> list[str]:
    """What other ledgers say of this one, and notes on what was read of it."""
    notes, kept = list[str](), read.verification.kept
    if asked.origin is not None:
        notes += check_origins(kept.origins, asked.origin, findings)
    if asked.deep and asked.upto is None and kept.learns:
        other, told = check_experience(os.fspath(asked.path), asked.experience)
        findings.all.extend(other)
        notes += told
    back = read.scanned.back
    if back.times:
        notes.append(
            f"the clock went back {back.times} times, first at event {back.first}: times are facts for people, order is by seq"
        )
    if read.unread:
        notes.append(f"{read.unread} artifacts were not read: all together are over {LARGEST_TOTAL} bytes")
    return notes


def _report(asked: _Asked, read: _Read, notes: list[str], ordered: tuple[Finding, ...]) -> Report:
    scanned, trusted = read.scanned, asked.trusted
    runs, exams = read.views
    return Report(
        path=encodable(os.fspath(asked.path)),
        deep=asked.deep,
        head_seq=scanned.last,
        head=scanned.head,
        counts=_counts(asked, read),
        findings=ordered,
        notes=tuple(notes),
        runs=runs,
        examinations=exams,
        root=scanned.heads.root().hex(),
        seals=tuple(read.sealing.views),
        provenance=_provenance(ordered, any((asked.head, trusted.checkpoints, trusted.key, trusted.file_digest)))
        + _but(asked),
        merit=_merit(ordered, asked.deep) + _but(asked),
    )


def _but(asked: _Asked) -> str:
    """What both verdicts leave open where texts are withheld."""
    return "" if asked.withheld is None else "; but for what rests on withheld texts"


def _counts(asked: _Asked, read: _Read) -> dict[str, int]:
    kept, (runs, exams), last = read.verification.kept, read.views, read.scanned.last
    counts = {
        "events": last if asked.upto is None else min(asked.upto, last),
        "artifacts": read.sound,
        "runs": len(runs),
        "cells": kept.cells,
        "rounds": kept.rounds,
    }
    return counts | {"examinations": len(exams)} if exams else counts


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
