"""An Nsight Systems SQLite export as a `timeline` artifact: every kernel of the trace as one call. Reads one file, never writes it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from ...events.errors import BadInput

_KERNELS, _NAMES = "CUPTI_ACTIVITY_KIND_KERNEL", "StringIds"
_MOST = 20_000
_QUERY = f"""
SELECT k.start, k.end, s.value FROM {_KERNELS} AS k LEFT JOIN {_NAMES} AS s ON s.id = k.%s
ORDER BY k.start, k.end LIMIT {_MOST + 1}
"""


def read_export(path: Path) -> bytes:
    """The `timeline` artifact (collector `nsys`, times in ns from the first kernel's start, operators unknown).

    Raises BadInput for what is no such export, holds no kernel, or holds more than 20,000.
    """
    if not path.is_file():
        raise _refusal(path, "no such file")
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            rows = db.execute(_QUERY % _name_column(path, db)).fetchall()
    except sqlite3.Error as error:
        raise _refusal(path, str(error)) from error
    if not rows:
        raise _refusal(path, f"table {_KERNELS} without a row")
    if len(rows) > _MOST:
        raise _refusal(
            path, f"more than {_MOST} kernels; capture one call (nsys profile --capture-range=cudaProfilerApi)"
        )
    return msgspec.json.encode({"collector": "nsys", "calls": [_call(path, rows)], "operators": None})


def _name_column(path: Path, db: sqlite3.Connection) -> str:
    columns = {row[1] for row in db.execute(f"PRAGMA table_info({_KERNELS})")}
    names = {row[1] for row in db.execute(f"PRAGMA table_info({_NAMES})")}
    named = next((column for column in ("demangledName", "shortName") if column in columns), None)
    if not {"start", "end"} <= columns or named is None or not {"id", "value"} <= names:
        raise _refusal(path, f"no table {_KERNELS} with start, end and a name, or no table {_NAMES}")
    return named


def _call(path: Path, rows: list[tuple[Any, Any, Any]]) -> list[list[Any]]:
    for start, end, name in rows:
        if not isinstance(start, int) or not isinstance(end, int) or not isinstance(name, str) or end <= start:
            raise _refusal(path, f"a kernel of start {start!r}, end {end!r}, name {name!r}")
    first = rows[0][0]
    return [[start - first, end - first, name] for start, end, name in rows]


def _refusal(path: Path, found: str) -> BadInput:
    return BadInput(
        f"{path}: expected an Nsight Systems export with traced kernels, found {found}. "
        "Make one with nsys export --type sqlite REPORT.nsys-rep."
    )
