"""Nsight Systems exports made here with the tables that the tool's documentation names; no trace was recorded."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from gpusolver.engine.worker.nsys_export import read_export
from gpusolver.events.errors import BadInput

Row = tuple[object, object, int | None]
TABLE = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, demangledName INT, shortName INT)"


def export(path: Path, *rows: Row, table: str = TABLE, strings: str = "StringIds") -> Path:
    with sqlite3.connect(path) as db:
        db.execute(table)
        db.execute(f"CREATE TABLE {strings} (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany(f"INSERT INTO {strings} VALUES (?, ?)", [(1, "exp(float*)"), (2, "add(float*)"), (3, "exp")])
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, ?, 3)", rows)
    db.close()
    return path


def test_kernels_in_order_of_start_from_the_first_ones_start(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite", (9_000_000_500, 9_000_000_700, 2), (9_000_000_100, 9_000_000_400, 1))
    before = path.read_bytes()
    assert json.loads(read_export(path)) == {
        "collector": "nsys",
        "calls": [[[0, 300, "exp(float*)"], [400, 600, "add(float*)"]]],
        "operators": None,
    }
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]


def test_the_short_name_stands_in_where_there_is_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)")
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        db.execute("INSERT INTO StringIds VALUES (7, 'softmax')")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 7)")
    db.close()
    assert json.loads(read_export(path))["calls"] == [[[0, 20, "softmax"]]]


@pytest.mark.parametrize(
    ("rows", "table", "strings", "words"),
    [
        ((), TABLE, "StringIds", "without a row"),
        (((5, 5, 1),), TABLE, "StringIds", "start 5, end 5"),
        (((5, "x", 1),), TABLE, "StringIds", "end 'x'"),
        (((5, 9, None),), TABLE, "StringIds", "name None"),
        (((5, 9, 99),), TABLE, "StringIds", "name None"),
        (((5, 9, 1),), TABLE, "Words", "no table StringIds"),
        (((5, 9, 1),), TABLE.replace("start", "begin"), "StringIds", "with start, end and a name"),
    ],
    ids=["empty", "no duration", "text", "no name", "unknown name", "no strings", "other columns"],
)
def test_an_export_that_does_not_fit_is_refused(
    tmp_path: Path, rows: tuple[Row, ...], table: str, strings: str, words: str
) -> None:
    path = export(tmp_path / "a.sqlite", *rows, table=table, strings=strings)
    with pytest.raises(BadInput, match=words) as caught:
        read_export(path)
    assert str(path) in str(caught.value) and "nsys export --type sqlite" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no database at all" * 50], ids=["empty", "text"])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="expected an Nsight Systems export"):
        read_export(path)


@pytest.mark.parametrize("name", ["missing.sqlite", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_export(tmp_path / name)


def test_a_whole_training_run_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite", *((10 * i, 10 * i + 5, 1) for i in range(20_001)))
    with pytest.raises(BadInput, match="capture one call"):
        read_export(path)
