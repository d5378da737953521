"""What a ledger file must look like, and the refusal of files that do not. Never writes to a file it did not make."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from .errors import BadInput, UnreadableLedger

APPLICATION_ID = 0x67707531
USER_VERSION = 1
SQL = (files(__package__ or "gpusolver.events") / "schema.sql").read_text(encoding="utf-8")

SALVAGE = (
    "Copy the file, with its -wal if there is one, before anything else; `sqlite3 FILE .recover` extracts what is whole. "
    "Go on in a new ledger."
)

_CONTENT = re.compile(r"(^CHECK constraint failed in )|( value in \w+\.\w+$)")


class SchemaObject(NamedTuple):
    """A row of sqlite_schema; `sql` is None for the indexes that SQLite makes by itself."""

    type: str
    name: str
    sql: str | None


def published() -> tuple[SchemaObject, ...]:
    """The objects of schema.sql as SQLite stores them, by (type, name)."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(SQL)
        return schema_objects(connection)
    finally:
        connection.close()


def schema_objects(connection: sqlite3.Connection) -> tuple[SchemaObject, ...]:
    """Every object of the database, by (type, name); text that is not UTF-8 keeps surrogate escapes."""
    found = connection.execute(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema ORDER BY type, name"
    )
    return tuple(
        SchemaObject(_text(type_), _text(name), None if sql is None else _text(sql)) for type_, name, sql in found
    )


def _text(cell: object) -> str:
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else ""


def require_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """STRICT tables came with SQLite 3.37."""
    if version < (3, 37, 0):
        found = ".".join(map(str, version))
        raise BadInput(f"SQLite {found} is too old: expected 3.37.0 or newer; use a Python built with a newer SQLite")


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Raise UnreadableLedger unless the file is a ledger of this layout: its ids, then the columns of its two tables."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    user_version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application_id != APPLICATION_ID:
        raise UnreadableLedger(
            f"{path} is not a ledger: application_id is {application_id:#010x}, expected {APPLICATION_ID:#010x}; "
            "nothing was changed, name another file"
        )
    if user_version > USER_VERSION:
        raise UnreadableLedger(
            f"{path} has schema version {user_version}, expected {USER_VERSION}: a newer gpusolver wrote it; update"
        )
    if user_version < USER_VERSION:
        raise UnreadableLedger(
            f"{path} has schema version {user_version}, expected {USER_VERSION}: no release wrote it"
        )
    for table, expected in _COLUMNS.items():
        found = _columns(connection, table)
        if found != expected:
            raise UnreadableLedger(
                f"{path}: table {table} has the columns {', '.join(found) or '(there is no such table)'}; "
                f"expected {', '.join(expected)}"
            )


def _columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Column names of a plain table; none for a view, a virtual table or nothing."""
    kind = connection.execute("SELECT type, sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    if kind is None or kind[0] != "table" or not str(kind[1]).startswith(f"CREATE TABLE {table}("):
        return ()
    return tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))


def refuse_damaged(connection: sqlite3.Connection, path: Path, *, content: bool) -> None:
    """Raise UnreadableLedger where quick_check finds damage.

    With `content` integrity_check: also where a cell breaks its table's rules, or an index lacks rows of its table.
    """
    connection.execute(f"PRAGMA ignore_check_constraints = {'OFF' if content else 'ON'}")
    report = [str(row[0]) for row in connection.execute(f"PRAGMA {'integrity' if content else 'quick'}_check(10000)")]
    damage = [line for line in report if line != "ok" and (content or not _CONTENT.search(line))]
    if damage:
        raise UnreadableLedger(f"{path} is damaged: {damage[0]}" + _more(damage) + f". {SALVAGE}")


def _more(lines: list[str]) -> str:
    return f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""


def refuse_altered(connection: sqlite3.Connection, path: Path) -> None:
    """Raise UnreadableLedger unless every object equals the published one: a dropped trigger guards nothing."""
    expected, found = set(published()), set(schema_objects(connection))
    if expected != found:
        names = sorted({f"{item.type} {item.name}" for item in expected ^ found})
        raise UnreadableLedger(
            f"{path}: schema objects differ from events/schema.sql: {', '.join(names)}. Appending would build on a layout "
            "that a verifier reports; go on in a new ledger, or restore the published objects"
        )


_COLUMNS = {
    "events": ("seq", "stream", "version", "type", "recorded_at", "payload", "prev_hash", "hash"),
    "artifacts": ("digest", "media_type", "size", "codec", "content"),
}
