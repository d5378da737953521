"""A rollback journal that a kill left beside a ledger, undone on a copy. Never changes the ledger, and lets no event be taken back."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from .errors import UnreadableLedger
from .files import beside

_LAST = (
    "SELECT seq, CAST(hash AS BLOB), (SELECT count(*) FROM events), (SELECT count(*) FROM artifacts) "
    "FROM events ORDER BY seq DESC LIMIT 1"
)


def undone(path: Path, folder: Path) -> Path:
    """A copy of the ledger in `folder` in which SQLite has undone what was cut off. Raises UnreadableLedger.

    Events are written in WAL mode only: a -journal that holds any is another ledger's or an old one. The copy shows it.
    """
    copy = folder / "copy.db"
    for suffix in ("", "-journal"):
        shutil.copyfile(beside(path, suffix), beside(copy, suffix))
    as_it_stands = last(f"{copy.as_uri()}?mode=ro&immutable=1")
    if as_it_stands not in (None, last(f"{copy.as_uri()}?mode=rw")):
        raise UnreadableLedger(
            f"{path.name}-journal does not belong to {path}: it would take events back. Nothing was changed; move it "
            "away (and keep it, until you know whose it is)"
        )
    return copy


def last(uri: str) -> tuple[object, ...] | None:
    """(seq, hash, counts) of the last event, a journal played back first unless immutable; None if none can be read."""
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        found: tuple[object, ...] | None = connection.execute(_LAST).fetchone()
        return found
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
    finally:
        connection.close()
