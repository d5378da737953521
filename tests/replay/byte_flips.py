"""One byte of a ledger's file altered at a time, and whether what the file holds is altered by it. No code under test decides that."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from gpusolver.events.errors import UnreadableLedger
from gpusolver.replay.seal import Anchors
from gpusolver.replay.verify import verify


class Tally(NamedTuple):
    """Flips that altered what the file holds, those of them that no finding named, and all that the digest named."""

    flips: int
    altered: int
    missed: list[int]
    unseen_by_digest: list[int]
    kinds: Counter[str]


def held(path: Path) -> object:
    """Everything that a reader gets from the file: ids, schema objects, rows with their storage classes, inflated artifacts.

    None where SQLite itself refuses it.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.text_factory = bytes
            ids = [db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")]
            objects = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()
            cells = ", ".join(f"typeof({c}), CAST({c} AS BLOB)" for c in _columns("events"))
            events = db.execute(f"SELECT {cells} FROM events NOT INDEXED ORDER BY seq").fetchall()
            cells = ", ".join(f"typeof({c}), {c}" for c in _columns("artifacts"))
            artifacts = [_inflated(row) for row in db.execute(f"SELECT {cells} FROM artifacts")]
        return ids, objects, events, artifacts
    except (sqlite3.Error, zlib.error, TypeError, ValueError, OverflowError):
        return None


def _columns(table: str) -> tuple[str, ...]:
    if table == "events":
        return "seq", "stream", "version", "type", "recorded_at", "payload", "prev_hash", "hash"
    return "digest", "media_type", "size", "codec", "content"


def _inflated(row: tuple[object, ...]) -> tuple[object, ...]:
    """The row with the bytes that its codec gives: a flip in the padding of a compressed stream alters nothing."""
    *others, codec, kind, content = row
    if codec == b"zlib" and isinstance(content, bytes):
        inflater = zlib.decompressobj()
        content = inflater.decompress(content) + inflater.flush() + inflater.unused_data
        if not inflater.eof:
            return (*others, codec, kind, None)
    return (*others, codec, kind, content)


def flip_each(path: Path, offsets: Iterable[int], anchors: Anchors, mask: int) -> Tally:
    """Flip the bits of `mask` (0: one that follows from the offset) at each offset, look, and put the byte back."""
    clean, content = held(path), path.read_bytes()
    flips, altered, missed, unseen, kinds = 0, 0, list[int](), list[int](), Counter[str]()
    descriptor = os.open(path, os.O_WRONLY)
    try:
        for offset in offsets:
            os.pwrite(descriptor, bytes([content[offset] ^ (mask or 1 << offset * 5 % 8)]), offset)
            flips += 1
            seen = _kinds(path, anchors)
            if "file digest" not in seen:
                unseen.append(offset)
            if held(path) != clean:
                altered += 1
                if seen == {"file digest"}:
                    missed.append(offset)
            kinds.update(seen or {"nothing"})
            os.pwrite(descriptor, content[offset : offset + 1], offset)
    finally:
        os.close(descriptor)
    assert path.read_bytes() == content and held(path) == clean
    return Tally(flips, altered, missed, unseen, kinds)


def _kinds(path: Path, anchors: Anchors) -> set[str]:
    """The kinds of findings; an unreadable file is found too, and its digest is another by the way."""
    try:
        return {finding.kind for finding in verify(path, deep=True, anchors=anchors).findings}
    except UnreadableLedger:
        return {"unreadable", "file digest"}
