"""The read-only side of a ledger file, safe on hostile ones. Never writes, and never reads half a ledger in silence."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from . import cells, schema
from .artifacts import digest as digest_of
from .artifacts import unpack
from .chain import GENESIS
from .codec import decode
from .errors import UnreadableLedger
from .files import beside, in_wal_mode, real, refuse_stray_wal, size
from .journal import undone
from .rows import ArtifactRow, Recorded, Row
from .schema import SchemaObject

_ROWS = (
    "SELECT seq, stream, version, type, recorded_at, CAST(payload AS BLOB), prev_hash, hash, typeof(payload) = 'text' "
    "FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT -1 OFFSET ?"
)
_ALL = -(2**63), 2**63 - 1
_ARTIFACTS = "SELECT digest, media_type, size, codec, content FROM artifacts"


class LedgerReader:
    """A ledger opened for reading; UnreadableLedger says why one cannot be. A context manager.

    `notices` are words for a person about what the file alone cannot show. `inspected`: this file was opened here before and found
    whole, and need not be read through once more.
    """

    def __init__(self, path: str | os.PathLike[str], *, inspected: bool = False) -> None:
        self.path = real(path)
        schema.require_sqlite()
        with self._explained():
            self._connection, self.notices = connect_read_only(self.path)
        try:
            with self._explained():
                self._inspect(whole=not inspected)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the reader is of no use afterwards."""
        self._connection.close()

    # --- what is stored ---

    def rows(self, first: int = _ALL[0], last: int = _ALL[1]) -> Iterator[Row]:
        """Every event as stored, by seq, checking nothing; hostile cells come as `Row.ill` says, they never raise.

        Only those with a seq from `first` to `last`, where given.
        """
        read = 0
        with self._explained(), self._texts_as(str):
            try:
                for found in self._connection.execute(_ROWS, (first, last, 0)):
                    yield cells.row(found)
                    read += 1
                return
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
            # A text cell is not UTF-8: read on from that row with texts as bytes.
            yield from map(cells.row, self._as_bytes(_ROWS, (first, last, read)))

    def recorded(self, stream: str | None = None) -> Iterator[Recorded]:
        """Every event decoded (upcast where older), by seq; of one stream if given. Checks no hash: that is replay's."""
        for row in self.rows():
            if stream is None or row.stream == stream:
                yield recorded(row, self.path)

    def head(self) -> tuple[int, str]:
        """(seq, hash) of the last event; (0, 64 zeros) of an empty ledger."""
        with self._explained():
            query = "SELECT seq, CAST(hash AS BLOB) FROM events ORDER BY seq DESC LIMIT 1"
            found = self._connection.execute(query).fetchone()
            return (0, GENESIS) if found is None else (cells.whole(found[0]), cells.text(found[1]))

    def begins(self, stream: str) -> int | None:
        """The seq of a stream's first event, by the index; None where there is no such stream."""
        with self._explained():
            query = "SELECT seq FROM events WHERE stream = ? AND version = 1"
            found = self._connection.execute(query, (stream,)).fetchone()
            return None if found is None else cells.whole(found[0])

    def before(self, seq: int, stream: str) -> tuple[int, str, str, int]:
        """(seq, hash, time) of the last event before `seq`, and how many events of a stream come before it."""
        with self._explained():
            texts = "CAST(hash AS BLOB), CAST(recorded_at AS BLOB)"
            query = f"SELECT seq, {texts} FROM events WHERE seq < ? ORDER BY seq DESC LIMIT 1"
            last = self._connection.execute(query, (seq,)).fetchone() or (0, GENESIS, "")
            count = "SELECT count(*) FROM events WHERE stream = ? AND seq < ?"
            (number,) = self._connection.execute(count, (stream, seq)).fetchone()
            return cells.whole(last[0]), cells.text(last[1]), cells.text(last[2]), cells.whole(number)

    def artifact(self, digest: str) -> bytes:
        """The uncompressed bytes under `digest`, hashed again; UnreadableLedger if absent, damaged or other bytes."""
        with self._explained():
            query = f"{_ARTIFACTS} WHERE digest = ?"
            found = next(map(cells.artifact, self._as_bytes(query, (digest,))), None)
        if found is None:
            raise UnreadableLedger(
                f"{self.path}: no artifact {digest}; the file is not whole, or the digest is mistyped"
            )
        return checked_artifact(found, digest, self.path)

    def artifact_rows(self) -> Iterator[ArtifactRow]:
        """Every artifact as stored, still packed, by digest, checking nothing."""
        with self._explained():
            yield from map(cells.artifact, self._as_bytes(f"{_ARTIFACTS} ORDER BY digest", ()))

    def schema_objects(self) -> tuple[SchemaObject, ...]:
        """(type, name, sql) of everything in the database; compare with `schema.published()`."""
        with self._explained():
            return schema.schema_objects(self._connection)

    # --- opening ---

    def _inspect(self, *, whole: bool) -> None:
        schema.refuse_foreign(self._connection, self.path)
        if whole:
            schema.refuse_damaged(self._connection, self.path, content=False)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's own errors as UnreadableLedger, in words; a damaged schema can make the error's own text no UTF-8."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise UnreadableLedger(f"{self.path} cannot be read: {error}. {_advice(self.path)}") from error

    def _as_bytes(self, query: str, parameters: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
        """Rows whose texts are marked as `cells.Text`, so that text, blob and undecodable text can be told apart."""
        cursor = self._connection.cursor()
        outside = self._connection.text_factory
        with self._texts_as(cells.Text):
            cursor.execute(query, parameters)
            while (found := cursor.fetchone()) is not None:
                self._connection.text_factory = outside
                yield found
                self._connection.text_factory = cells.Text

    @contextmanager
    def _texts_as(self, kind: Callable[[bytes], object]) -> Iterator[None]:
        """Texts come as `kind` inside; `str` is the fast one, and raises on what is no UTF-8."""
        outside = self._connection.text_factory
        self._connection.text_factory = kind
        try:
            yield
        finally:
            self._connection.text_factory = outside


def connect_read_only(path: Path) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """A connection that can change nothing and trusts nothing, and notices on what may be missing beside the file."""
    path = real(path)
    unclosed = in_wal_mode(path)
    refuse_stray_wal(path)
    mode = "mode=ro"
    notices: tuple[str, ...] = ()
    if unclosed and _nothing_beside(path):
        # For a file in WAL mode mode=ro would leave -wal and -shm behind, or fail on read-only media; with nothing
        # beside the file, nothing is missed by not looking there.
        mode = "mode=ro&immutable=1"
        notice = (
            f"{path} was not closed by its writer and has no {path.name}-wal beside it: if that file was left behind in "
            "a copy, the newest events are missing; compare the head with one kept elsewhere"
        )
        notices = (notice,)
    connection = _careful(path, mode)
    if _must_undo(connection, path):
        connection.close()
        return _from_copy(path)
    return connection, notices


def _careful(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
    connection.text_factory = _lenient
    for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _must_undo(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether a kill, while the ledger was being made or closed, left a journal that has to be played back first."""
    if not size(beside(path, "-journal")):
        return False
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK
    return False


def _from_copy(path: Path) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Read from a copy in which that is undone: the file itself is left to its next writer."""
    with tempfile.TemporaryDirectory() as folder:
        connection = _careful(undone(path, Path(folder)), "mode=ro&immutable=1")
        connection.execute("PRAGMA schema_version").fetchone()  # what is open outlives its name
    notice = (
        f"{path} was being made or closed by a writer that was cut off, and {path.name}-journal beside it undoes that: read "
        "from a copy without it; the next writer, or SQLite itself, puts the file in order"
    )
    return connection, (notice,)


def _lenient(raw: bytes) -> str:
    """Text of a file that nobody vouches for: a damaged schema text must differ from the published one, not raise."""
    return raw.decode(errors="surrogateescape")


def _nothing_beside(path: Path) -> bool:
    """No -wal, or an empty one where no writer can be at work."""
    wal = beside(path, "-wal")
    return not wal.exists() or (wal.stat().st_size == 0 and not os.access(path.parent, os.W_OK))


def _advice(path: Path) -> str:
    wal = beside(path, "-wal")
    if size(wal):
        return (
            f"{wal.name} beside it holds newer events, and reading both needs a folder that can be written to: copy "
            f"{path.name} and {wal.name} together into one"
        )
    return schema.SALVAGE


def recorded(row: Row, path: Path) -> Recorded:
    """The row with its event decoded; UnreadableLedger names the seq where it cannot be."""
    try:
        event = decode(row.type, row.payload)
    except UnreadableLedger as error:
        raise UnreadableLedger(f"{path}: event {row.seq}: {error}") from error
    return Recorded(row.seq, row.stream, row.version, row.type, row.recorded_at, event)


def checked_artifact(row: ArtifactRow, digest: str, path: Path) -> bytes:
    """The row's uncompressed bytes, which must hash to `digest`."""
    if row.ill:
        raise UnreadableLedger(f"{path}: artifact {digest}: wrong storage class in {', '.join(row.ill)}")
    try:
        content = unpack(row.codec, row.content, row.size)
    except UnreadableLedger as error:
        raise UnreadableLedger(f"{path}: artifact {digest}: {error}") from error
    if (found := digest_of(content)) != digest:
        raise UnreadableLedger(f"{path}: artifact {digest}: its bytes have the digest {found}; the file was altered")
    return content
