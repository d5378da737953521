"""What holds of a ledger's file beside its events: schema objects, indexes, artifacts (FORMAT.md section 1). Never trusts a stored digest."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from ..events.reader import connect_read_only
from ..events.rows import ArtifactRow
from .findings import Findings

LARGEST_ARTIFACT = 1 << 28
LARGEST_TOTAL = 1 << 31
MEDIA_TYPES = frozenset(
    {
        "application/json",
        "application/octet-stream",
        "application/x-cubin",
        "text/plain",
        "text/x-python",
        "text/x-ttir",
    }
)


def check_schema(objects: Iterable[tuple[str, str, str | None]], findings: Findings) -> None:
    """Every schema object byte for byte as published, and no other."""
    published = set(_published())
    stored = set(objects)
    for kind, name, sql in sorted(published - stored, key=str):
        findings.add(0, "schema object", f"{kind} {name}: {sql}", "absent or different")
    for kind, name, sql in sorted(stored - published, key=str):
        findings.add(0, "schema object", "only the objects of events/schema.sql", f"{kind} {name}: {sql}")


def check_schema_cells(path: str | os.PathLike[str], findings: Findings) -> None:
    """The same rows cell by cell: a name kept as a blob, or the table that a trigger is listed under, shows in no SQL text."""
    query = "SELECT quote(type), quote(name), quote(tbl_name), quote(sql) FROM sqlite_schema ORDER BY 1, 2"
    with closing(sqlite3.connect(":memory:")) as memory, closing(connect_read_only(Path(path))[0]) as stored:
        memory.executescript(files("gpusolver.events").joinpath("schema.sql").read_text("utf-8"))
        published, found = memory.execute(query).fetchall(), stored.execute(query).fetchall()
    for row in sorted(set(published) ^ set(found)):
        if row in published:
            findings.add(0, "schema object", ", ".join(row[:3]), "absent, or with other cells")


def _published() -> list[tuple[str, str, str | None]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(files("gpusolver.events").joinpath("schema.sql").read_text("utf-8"))
        return connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    finally:
        connection.close()


def check_indexes(path: str | os.PathLike[str], findings: Findings) -> None:
    """Each index holds the rows of its table: the views read through them, and a false one hides rows from a reader."""
    connection, _ = connect_read_only(Path(path))
    try:
        for (said,) in connection.execute("PRAGMA integrity_check"):
            if "index" in said:
                findings.add(0, "index", "an entry for each row of the table", said)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        findings.add(0, "index", "an entry for each row of the table", f"no answer: {error}")
    finally:
        connection.close()


def check_artifacts(rows: Iterable[ArtifactRow], findings: Findings) -> tuple[dict[str, int], int]:
    """Inflate each artifact, never beyond its stated size; (sizes by digest of those that are what they say, number not read).

    What comes after LARGEST_TOTAL bytes is not read: a small file may unpack to more than there is time for.
    """
    sound: dict[str, int] = {}
    total = unread = 0
    for digest, media_type, size, codec, content, ill in rows:
        if media_type not in MEDIA_TYPES:
            findings.add(0, "media type", f"artifact {digest} of a type of FORMAT.md section 1", media_type)
        total += max(size, len(content))
        if total > LARGEST_TOTAL:
            unread += 1
            continue
        found = _inflated(content, codec, size)
        if ill:
            findings.add(
                0, "column type", f"artifact {digest} in the published storage classes", f"others in {', '.join(ill)}"
            )
        elif found is None or len(found) != size:
            findings.add(
                0, "artifact size", f"artifact {digest}: {size} bytes ({codec})", "another length or no such encoding"
            )
        elif sha256(found).hexdigest() != digest:
            findings.add(0, "artifact digest", digest, sha256(found).hexdigest())
        else:
            sound[digest] = size
    return sound, unread


def _inflated(content: bytes, codec: str, size: int) -> bytes | None:
    if codec == "raw":
        return content
    if codec != "zlib" or not 0 <= size <= LARGEST_ARTIFACT:
        return None
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(content, size + 1)
    except zlib.error:
        return None
    return plain if inflater.eof and not inflater.unused_data else None
