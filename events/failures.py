"""What went wrong with a ledger that is being written, in words for a person. Never touches the ledger itself."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from . import schema
from .errors import BadInput, ConcurrencyConflict, ToolFailed, UnreadableLedger


def when_opening(error: sqlite3.Error | OSError | UnicodeDecodeError, path: Path) -> Exception:
    """Why the ledger cannot be opened for appending."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or shutil.disk_usage(path.parent).free == 0:
        return ToolFailed(f"{path} cannot be opened for appending: {error}; make room on the disk")
    if isinstance(error, OSError):
        return ToolFailed(f"{path} cannot be opened for appending: {error}")
    if "locking protocol" in str(error) or code == sqlite3.SQLITE_IOERR:
        return BadInput(
            f"{path}: this file system cannot hold a ledger in use ({error}): network file systems lack the locks and "
            "shared memory it needs; name a file on a local disk and copy it over when the run has ended"
        )
    if code == sqlite3.SQLITE_BUSY:
        return ConcurrencyConflict(f"{path}: another program holds the database; end it and try again")
    if code == sqlite3.SQLITE_NOTADB:
        return UnreadableLedger(f"{path} is not a ledger: it is no SQLite database; name another file")
    return UnreadableLedger(f"{path} cannot be opened for appending: {error}. {schema.SALVAGE}")


def when_appending(error: sqlite3.Error, path: Path, at: int, waited_s: float) -> Exception:
    """Why SQLite failed in an open ledger, at event `at` (0: none was being written)."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return ConcurrencyConflict(
            f"{path}: another program has held the database for {waited_s} s; end it and try again. Nothing was written"
        )
    where = f" at event {at}" if at else ""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return ToolFailed(
            f"{path}: ledger full{where}: {error}. The whole transaction was rolled back, all events before it stand; make "
            "room on the disk and append again"
        )
    return ToolFailed(f"{path}: SQLite failed{where}: {error}. A transaction under way was rolled back")


def when_moved(moved: str, path: Path) -> ToolFailed:
    """The ledger at `path`, its lock or its -wal is not the file that it was."""
    return ToolFailed(
        f"{moved} was removed, renamed or replaced while {path} was being written: other programs may not see what was "
        "appended. Put it back if you can, close the ledger and compare its head with what was acknowledged"
    )
