"""Ledgers altered by hand: rows read raw, changed, chained again by the page's own words, and written back. No code under test."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

SCHEMA = files("gpusolver.events").joinpath("schema.sql").read_text("utf-8")


class Line:
    """One row, its payload as a JSON object `body`; `raw` replaces the stored bytes as they are."""

    def __init__(self, seq: int, stream: str, kind: str, at: str, payload: str) -> None:
        self.seq, self.stream, self.kind, self.at = seq, stream, kind, at
        self.raw: str | None = None
        self.body: Any = json.loads(payload)

    def payload(self) -> str:
        """The text to store."""
        return self.raw if self.raw is not None else compact(self.body)


def compact(body: object) -> str:
    """JSON as the ledger spells it."""
    return msgspec.json.encode(body).decode()


def lines(path: Path) -> list[Line]:
    """Every event."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT seq, stream, type, recorded_at, payload FROM events ORDER BY seq")
        return [Line(*row) for row in found]


def sha(content: bytes) -> str:
    """Lower-case hex SHA-256."""
    return hashlib.sha256(content).hexdigest()


def event_hash(seq: int, version: int, previous: str, stream: str, kind: str, at: str, payload: bytes) -> str:
    """The hash of FORMAT.md section 2, written out."""
    parts = [b"gpusolver-event-1", str(seq).encode(), str(version).encode(), previous.encode()]
    for text in (stream, kind, at):
        parts.append(str(len(text.encode())).encode() + b":" + text.encode())
    return sha(b"\n".join([*parts, str(len(payload)).encode() + b":" + payload]))


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its triggers and checks, which are put back byte for byte."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        db.execute("PRAGMA ignore_check_constraints = ON")
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        yield db
        for _, sql in triggers:
            db.execute(sql)


def rewrite(path: Path, change: Callable[[list[Line]], list[Line] | None]) -> Path:
    """Change the events, then number, version and chain them anew, as a forger who holds the file would."""
    events = lines(path)
    changed = change(events)
    events = events if changed is None else changed
    with unguarded(path) as db:
        db.execute("BEGIN")
        db.execute("DELETE FROM events")
        previous, versions = "0" * 64, dict[str, int]()
        for seq, line in enumerate(events, start=1):
            version = versions[line.stream] = versions.get(line.stream, 0) + 1
            payload = line.payload()
            stored = event_hash(seq, version, previous, line.stream, line.kind, line.at, payload.encode())
            row = (seq, line.stream, version, line.kind, line.at, payload, previous, stored)
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            previous = stored
        db.execute("COMMIT")
    return path


def add_artifact(path: Path, content: bytes) -> str:
    """Store an artifact properly."""
    with closing(sqlite3.connect(path)) as db, db:
        row = (sha(content), "application/json", len(content), "zlib", zlib.compress(content))
        db.execute("INSERT OR IGNORE INTO artifacts VALUES (?, ?, ?, ?, ?)", row)
    return sha(content)


def artifact(path: Path, digest: str) -> bytes:
    """The bytes of an artifact."""
    with closing(sqlite3.connect(path)) as db:
        codec, content = db.execute("SELECT codec, content FROM artifacts WHERE digest = ?", (digest,)).fetchone()
    return zlib.decompress(content) if codec == "zlib" else bytes(content)


def first(events: list[Line], kind: str, **fields: object) -> Line:
    """The first event of a kind whose payload has these fields."""
    return next(e for e in events if e.kind == kind and all(e.body.get(k) == v for k, v in fields.items()))
