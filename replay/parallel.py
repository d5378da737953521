"""A ledger's events checked in portions by several processes. Never decides: what a portion finds wrong is for one process to say.

Portions begin where runs begin, and a fault in one, or one that does not end where the next begins, leaves all of them unused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from ..events.errors import GpuSolverError
from ..events.reader import LedgerReader
from .findings import Findings
from .integrity import SEAL_STREAM, GoesOn, Place, scan, without_collector
from .kept import Part
from .shelf import Shelf
from .verification import Verification

Sizes = dict[str, int]


def spread(
    reader: LedgerReader, jobs: int, sound: Sizes, sizes: Iterable[int], has_origin: bool, listed: int | None
) -> tuple[Part, ...]:
    """The portions of a ledger in order; none where it is not worth it, or where something is wrong."""
    begins, path = boundaries(reader, jobs), reader.path
    if len(begins) < 2:
        return ()
    ends = [*(seq - 1 for seq in begins[1:]), 2**63 - 1]
    marks = tuple(sizes)
    with ProcessPoolExecutor(len(begins), mp_context=get_context("spawn")) as pool:
        work = [
            pool.submit(check, path, a, b, sound, marks, has_origin, listed) for a, b in zip(begins, ends, strict=True)
        ]
        try:
            parts = [done.result() for done in work]
        except (GoesOn, GpuSolverError, BrokenProcessPool):
            return ()
    return tuple(part for part in parts if part is not None) if None not in parts else ()


def boundaries(reader: LedgerReader, jobs: int) -> list[int]:
    """Where portions of about the same number of events begin: the first event, and registrations of runs in between."""
    last, _ = reader.head()
    found = {_next_run(reader, 1 + last * part // jobs) for part in range(1, jobs)}
    return sorted({1, *(seq for seq in found if seq is not None and 1 < seq <= last)})


def _next_run(reader: LedgerReader, due: int) -> int | None:
    """Where the first run begins that does so at `due` or later; by halves, for runs are numbered in order."""

    def early(number: int) -> bool:
        seq = reader.begins(f"run{number}")
        return seq is not None and seq < due

    above = 1
    while early(above):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (middle, above) if early(middle) else (below, middle)
    return reader.begins(f"run{above}")


@without_collector()
def check(
    path: str | os.PathLike[str],
    first: int,
    last: int,
    sound: Sizes,
    sizes: tuple[int, ...],
    has_origin: bool,
    listed: int | None,
) -> Part | None:
    """One portion, in a process of its own."""
    findings = Findings()
    with LedgerReader(path, inspected=True) as reader:
        before, head, at, seals = reader.before(first, SEAL_STREAM)
        shelf = Shelf(reader.artifact, sound)
        verification = Verification(shelf, sound, False, findings, has_origin=has_origin, listed=listed)
        place = Place(before, head, seals, at)
        scanned = scan(reader.rows(first, last), findings, sizes=sizes, after=place, ended=verification.take)
        sealed = scanned.streams.pop(SEAL_STREAM, [])
        verification.take(scanned)
    return None if findings.all else verification.kept.part(before + 1, scanned, sealed)
