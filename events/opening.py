"""Opening a ledger for appending and leaving one file behind. Never changes a file that it has not recognised."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import warnings
from pathlib import Path

from . import failures, journal, mounts, schema
from .errors import BadInput
from .files import beside, not_a_file, refuse_stray_wal, size
from .reader import connect_read_only

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_TRANSACTION,
}


def refuse_path(path: Path) -> None:
    """BadInput where no ledger file can be: checked before anything is made there."""
    _refuse_network(path)
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        _refuse_new(path)
        return
    except OSError as error:
        raise BadInput(f"{path} cannot be looked at: {error.strerror}; name another file") from error
    if (kind := not_a_file(found)) is not None:
        raise BadInput(f"{path} is {kind}; name a ledger file" + (" in it" if path.is_dir() else ""))
    if found.st_nlink > 1:
        raise BadInput(
            f"{path} has {found.st_nlink} names (hard links): writers under two of them could not see each other's -wal; "
            "remove the other names, or copy the file and go on in the copy"
        )


def _refuse_network(path: Path) -> None:
    """There SQLite may well run, and lose or damage a ledger later: when two hosts open it, or the server goes away."""
    kind = mounts.type_of(path)
    if kind in mounts.NETWORK:
        raise BadInput(
            f"{path} lies on {kind}, a network file system, whose locks and fsync a ledger in use cannot rest on: name a file "
            "on a local disk, and copy it over when the run has ended (reading it there is safe)"
        )


def _refuse_new(path: Path) -> None:
    if not path.parent.is_dir():
        raise BadInput(f"{path}: the folder {path.parent} does not exist; make it first")
    for left in (beside(path, "-wal"), beside(path, "-journal")):
        if size(left):
            raise BadInput(
                f"{left} is there without {path.name}: a new ledger of that name would destroy it; put back the file that it "
                "belongs to, or name another"
            )


def open_for_appending(path: Path, timeout_s: float) -> sqlite3.Connection:
    """A durable connection to the ledger at `path`, made if absent; on any error nothing half made is left behind.

    The caller holds the writer lock. On the connection only reading, INSERT and transactions are allowed.
    """
    made_here = not path.exists()
    connection: sqlite3.Connection | None = None
    try:
        new = made_here or _recognise(path)
        connection = connect(path, timeout_s)
        _make_durable(connection, path)
        if new:
            _create(connection)
        connection.set_authorizer(_authorize)
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if made_here:
            for suffix in ("", "-wal", "-shm", "-journal"):
                beside(path, suffix).unlink(missing_ok=True)
        if isinstance(error, (sqlite3.Error, OSError, UnicodeDecodeError)):
            raise failures.when_opening(error, path) from error
        raise


def connect(path: Path, timeout_s: float) -> sqlite3.Connection:
    """A connection on which only explicit statements begin and end transactions."""
    return sqlite3.connect(path, timeout=timeout_s, isolation_level=None)


def settle(connection: sqlite3.Connection, path: Path) -> None:
    """Move everything into the one file; warns, naming the other, where another program's reading prevents that."""
    connection.set_authorizer(None)
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not busy and connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete":
            return
        reason = "another program is reading it"
    except sqlite3.Error as error:
        reason = str(error)
    warnings.warn(
        f"{path} is whole, but not in one file ({reason}): {path.name}-wal belongs to it, copy both together",
        stacklevel=3,
    )


def rescue(connection: sqlite3.Connection) -> None:
    """Copy what is in the -wal into the open file, whatever its name is now, and leave the -wal where it is."""
    connection.set_authorizer(None)
    with contextlib.suppress(sqlite3.Error):  # the caller reports that the file has moved; this is one chance more
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def _recognise(path: Path) -> bool:
    """True for an empty file; raises for one that is not a whole ledger of this layout. Changes nothing in it.

    A connection of its own: where quick_check ran before journal_mode = WAL, SQLite refuses the way back when closing.
    """
    refuse_stray_wal(path)
    if size(path) == 0:
        return True
    if beside(path, "-journal").exists():
        _roll_back(path)
        if size(path) == 0:  # the kill came while the file was being made: that is undone, too
            return True
    connection, notices = connect_read_only(path)
    try:
        if _is_empty(connection):
            return True
        for notice in notices:
            warnings.warn(notice, stacklevel=4)
        schema.refuse_foreign(connection, path)
        schema.refuse_damaged(connection, path, content=True)
        schema.refuse_altered(connection, path)
        return False
    finally:
        connection.close()


def _roll_back(path: Path) -> None:
    """Let SQLite undo what a kill cut off, if that takes no event back; only a connection that may write can."""
    with tempfile.TemporaryDirectory() as folder:
        journal.undone(path, Path(folder))
    journal.last(f"{path.as_uri()}?mode=rw")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """A new file, or one whose making was cut off: no object, no id."""
    objects = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    return bool(objects == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0)


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    """Set what the promises rest on and read it back: builds of SQLite differ in their defaults."""
    journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    connection.execute("PRAGMA synchronous = FULL")
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    if (journal, synchronous) != ("wal", 2):
        raise BadInput(
            f"{path}: expected journal_mode wal and synchronous 2 (FULL), found {journal} and {synchronous}; "
            "name a ledger on a local disk"
        )


def _create(connection: sqlite3.Connection) -> None:
    """Ids and objects in one transaction: a kill leaves an empty file or a whole layout."""
    ids = f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = {schema.USER_VERSION};"
    connection.executescript(f"BEGIN IMMEDIATE; {ids}\n{schema.SQL}\nCOMMIT;")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # from here on the main file alone is a ledger


def _authorize(action: int, table: str | None, column: str | None, database: str | None, trigger: str | None) -> int:
    """Reading and INSERT are all that appending needs; UPDATE, DELETE, DDL, ATTACH and PRAGMA are refused in process."""
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
