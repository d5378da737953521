"""The one writer of a ledger: durable, append-only, optimistic per stream. Never changes or removes what is stored."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Self

from . import artifacts as packing
from . import failures, files, opening, schema
from .chain import GENESIS, event_hash
from .clock import utc_now
from .codec import encode
from .errors import BadInput, ConcurrencyConflict
from .lock import WriterLock
from .model import Event
from .reader import checked_artifact, recorded
from .rows import ArtifactRow, Recorded, Row

Batch = tuple[str, int, Sequence[Event]]
"""(stream, expected version, events): the version that the stream has before the first of the events; 0 for none."""

LOOK_AGAIN_S = 0.05
"""Seconds: a removed, renamed or replaced file is noticed by the first append that comes so long after the last look."""

_Encoded = tuple[str, int, list[tuple[str, bytes]]]
_Packed = tuple[str, str, int, packing.Codec, bytes]

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_HEAD = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
_VERSION = "SELECT max(version) FROM events WHERE stream = ?"
_SPAN = (
    "SELECT seq, type, CAST(payload AS BLOB) FROM events WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version"
)
_ROWS = "SELECT seq, stream, version, type, recorded_at, CAST(payload AS BLOB), prev_hash, hash FROM events"
_ARTIFACT = "SELECT digest, media_type, size, codec, content FROM artifacts WHERE digest = ?"


class LedgerWriter:
    """Opens or makes the ledger at `path` for appending; a context manager.

    What `append` returned is on disk (WAL, synchronous = FULL): a kill or a power cut loses nothing of it. `clock` gives
    `recorded_at`, printable ASCII, once for each transaction. Other programs that hold the database are waited for,
    `busy_timeout_s` seconds at most.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], str] = utc_now, busy_timeout_s: float = 10.0
    ) -> None:
        self.path = files.real(path)
        self._clock = clock
        self._timeout = busy_timeout_s
        schema.require_sqlite()
        opening.refuse_path(self.path)
        self._lock = WriterLock(self.path)
        try:
            self._connection = opening.open_for_appending(self.path, busy_timeout_s)
        except BaseException:
            self._lock.release()
            raise
        self._execute = self._connection.cursor().execute
        self._places = files.Places(self.path, self._lock.path, files.beside(self.path, "-wal"))
        self._look_at = 0.0
        # What this writer last wrote; the table's own guard refuses an append that rests on anything older.
        self._head: tuple[int, str] | None = None
        self._versions: dict[str, int] = {}
        self._at = 0  # the seq being inserted, for the words of an error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave one file that is the whole ledger; warns where another program's reading prevents that. May be repeated.

        ToolFailed if the file is not where it was opened: removed, renamed (it is whole under its new name) or replaced.
        """
        if self._lock.released:
            return
        moved = self._places.moved(self.path)
        try:
            with closing(self._connection):
                if moved:
                    opening.rescue(self._connection)
                else:
                    opening.settle(self._connection, self.path)
        finally:
            self._lock.release()
        if moved:
            raise failures.when_moved(str(self.path), self.path)

    # --- appending ---

    def append(
        self,
        stream: str,
        expected_version: int,
        events: Sequence[Event],
        artifacts: Iterable[tuple[bytes, str]] = (),
    ) -> list[int]:
        """Append to one stream, with (bytes, media type) artifacts, in one durable transaction; returns the seqs.

        A retry of events that are there already returns their seqs and adds nothing. ConcurrencyConflict where the stream
        is elsewhere, BadInput where an event cannot be recorded, ToolFailed where the disk is full: nothing is written.
        ToolFailed also where the ledger was moved away: then it is written, but not where others look.
        """
        return self.append_many([(stream, expected_version, events)], artifacts)

    def append_many(self, batches: Iterable[Batch], artifacts: Iterable[tuple[bytes, str]] = ()) -> list[int]:
        """Append to several streams in one durable transaction, else as `append`; seqs in the order of the events."""
        encoded = [
            (stream, expected, [(type(event).__name__, encode(event)) for event in events])
            for stream, expected, events in batches
        ]
        packed = [
            (packing.digest(content), media, len(content), *packing.pack(content)) for content, media in artifacts
        ]
        recorded_at = self._clock()
        _refuse_unprintable(recorded_at, encoded)
        try:
            try:
                seqs = self._commit(encoded, packed, recorded_at)
            except sqlite3.IntegrityError:  # the guard: another program has appended since; look again, then decide
                seqs = self._commit(encoded, packed, recorded_at)
        except sqlite3.Error as error:
            raise self._explain(error) from error
        if time.monotonic() >= self._look_at:
            self._refuse_moved()
        return seqs

    def _commit(self, batches: list[_Encoded], artifacts: list[_Packed], recorded_at: str) -> list[int]:
        """One transaction; any error rolls all of it back and forgets what was known of the file."""
        seqs: list[int] = []
        self._at = 0
        # One INSERT is a transaction of its own: the guard looks at the file under the same lock.
        explicit = bool(artifacts) or len(batches) != 1 or len(batches[0][2]) != 1
        try:
            if explicit:
                self._execute("BEGIN IMMEDIATE")  # in WAL, reading first and writing then fails at once when busy
                self._head = self._head or self.head()
                self._at = self._head[0] + 1
            for artifact in artifacts:
                self._store(artifact)
            for stream, expected, events in batches:
                seqs += self._append(stream, expected, events, recorded_at)
            if explicit:
                self._execute("COMMIT")
            self._at = 0
            return seqs
        except BaseException:
            self._head, self._versions = None, {}
            if self._connection.in_transaction:  # a full disk may have rolled back already
                self._execute("ROLLBACK")
            raise

    def _append(self, stream: str, expected: int, events: list[tuple[str, bytes]], recorded_at: str) -> Iterable[int]:
        head, version = self._head, self._versions.get(stream)
        if head is None or version is None or version != expected:
            head, version = self.head(), self.version(stream)
        if version != expected:
            return self._appended_before(stream, expected, version, events)
        seq, prev_hash = head
        first = seq + 1
        for type_, payload in events:
            seq += 1
            version += 1
            hash_ = event_hash(seq, version, prev_hash, stream, type_, recorded_at, payload)
            self._at = seq
            self._execute(_INSERT, (seq, stream, version, type_, recorded_at, payload.decode(), prev_hash, hash_))
            prev_hash = hash_
        self._head = (seq, prev_hash)
        self._versions[stream] = version
        return range(first, seq + 1)

    def _appended_before(self, stream: str, expected: int, version: int, events: list[tuple[str, bytes]]) -> list[int]:
        """The seqs of exactly these events at these versions, appended by an earlier call; else the conflict."""
        stored = self._connection.execute(_SPAN, (stream, expected + 1, expected + len(events))).fetchall()
        if events and [(type_, payload) for _, type_, payload in stored] == events:
            return [int(seq) for seq, _, _ in stored]
        raise ConcurrencyConflict(
            f"{self.path}: stream {stream!r}: expected version {expected}, found {version}, and what it holds from there is "
            "not what was to be appended; read the stream again and decide anew. Nothing was written"
        )

    def _store(self, artifact: _Packed) -> None:
        """Insert it, or prove that what is stored under its digest is it: an event may not rest on other bytes."""
        found = self._connection.execute(_ARTIFACT, artifact[:1]).fetchone()
        if found is None:
            self._connection.execute("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?)", artifact)
        else:
            checked_artifact(ArtifactRow(*found), artifact[0], self.path)

    def _refuse_moved(self) -> None:
        """What is acknowledged must be where others find it; after a look at the -wal, the next commit costs half more."""
        if (moved := self._places.first_moved()) is not None:
            raise failures.when_moved(moved, self.path)
        self._look_at = time.monotonic() + LOOK_AGAIN_S

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's own errors in words."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> Exception:
        return failures.when_appending(error, self.path, self._at, self._timeout)

    # --- reading on the same connection ---

    def version(self, stream: str) -> int:
        """The number of events in `stream`; 0 for one that does not exist."""
        with self._explained():
            return int(self._connection.execute(_VERSION, (stream,)).fetchone()[0] or 0)

    def head(self) -> tuple[int, str]:
        """(seq, hash) of the last event; (0, 64 zeros) of an empty ledger."""
        with self._explained():
            seq, hash_ = self._connection.execute(_HEAD).fetchone() or (0, GENESIS)
            return int(seq), str(hash_)

    def events(self, stream: str | None = None) -> list[Recorded]:
        """Every event, or those of one stream, by seq."""
        of_stream, parameters = (" WHERE stream = ?", (stream,)) if stream is not None else ("", ())
        with self._explained():
            cursor = self._connection.execute(f"{_ROWS}{of_stream} ORDER BY seq", parameters)
            return [recorded(Row(*cells), self.path) for cells in cursor]

    def artifact(self, digest: str) -> bytes:
        """The uncompressed bytes under `digest`, hashed again; BadInput if there is no such artifact."""
        with self._explained():
            found = self._connection.execute(_ARTIFACT, (digest,)).fetchone()
        if found is None:
            raise BadInput(f"{self.path}: no artifact {digest}")
        return checked_artifact(ArtifactRow(*found), digest, self.path)


def _refuse_unprintable(recorded_at: str, batches: list[_Encoded]) -> None:
    """The chain's preimage and the table take printable ASCII only."""
    for what, text in (("recorded_at (from the clock)", recorded_at), *[("stream", batch[0]) for batch in batches]):
        if not (text and text.isascii() and text.isprintable()):
            raise BadInput(f"{what} is {text!r}: expected printable ASCII, at least one character")
