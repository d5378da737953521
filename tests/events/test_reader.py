"""The reader on honest, damaged and hostile files: it never changes one, never crashes on a cell, never guesses."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusolver.events import GENESIS, ArtifactRow, Row, UnreadableLedger, digest, encode, event_hash, schema
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import STREAM, attempt, attempts, fill


def test_an_empty_ledger(tmp_path: Path) -> None:
    LedgerWriter(tmp_path / "ledger.db").close()
    with LedgerReader(tmp_path / "ledger.db") as reader:
        assert list(reader.rows()) == []
        assert list(reader.artifact_rows()) == []
        assert reader.head() == (0, GENESIS)
        assert reader.notices == ()
        assert reader.schema_objects() == schema.published()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with LedgerReader(fill(tmp_path / "ledger.db")) as reader:
        rows = list(reader.rows())
        assert [row.payload for row in rows] == [encode(event) for event in attempts(3)]
        assert [row.ill for row in rows] == [(), (), ()]
        assert [(item.seq, item.version, item.event) for item in reader.recorded(STREAM)] == [
            (1, 1, attempt(0)),
            (2, 2, attempt(1)),
            (3, 3, attempt(2)),
        ]
        assert list(reader.recorded("run2")) == []
        assert reader.head() == (3, rows[2].hash)
        assert list(reader.artifact_rows()) == [
            ArtifactRow(digest(b"source text"), "text/x-python", 11, "raw", b"source text")
        ]
        assert reader.artifact(digest(b"source text")) == b"source text"
        with pytest.raises(UnreadableLedger, match="no artifact"):
            reader.artifact("0" * 64)
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_nothing_can_be_written_through_the_reader(tmp_path: Path) -> None:
    with (
        LedgerReader(fill(tmp_path / "ledger.db")) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader._connection.execute("CREATE TABLE more(x)")


def test_a_ledger_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as writer:
        writer.append(STREAM, 0, attempts(2))
        with LedgerReader(path) as reader:
            assert reader.head() == writer.head()
            writer.append(STREAM, 2, [attempt(2)])
            assert [item.event for item in reader.recorded()] == attempts(3)


# --- files that are refused -------------------------------------------------------------------------------------------


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(x)")
    connection.commit()
    connection.close()


def without_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1;")
    connection.close()


def with_a_view_for_a_table(path: Path) -> None:
    without_tables(path)
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE VIEW events AS SELECT 1 AS seq, 'run1' AS stream, 1 AS version, 'X' AS type, 't' AS recorded_at, "
        "'{}' AS payload, '' AS prev_hash, '' AS hash;"
    )
    connection.close()


def truncated(path: Path) -> None:
    fill(path, 200)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "cannot be read: No such file"),
    "directory": (lambda path: path.mkdir(), "is a directory"),
    "empty": (lambda path: path.touch(), "no SQLite database"),
    "text": (lambda path: path.write_text("x" * 200), "no SQLite database"),
    "foreign": (foreign, "application_id is 0x00000000, expected 0x67707531"),
    "no tables": (without_tables, "table events has the columns .there is no such table."),
    "view": (with_a_view_for_a_table, "table events has the columns .there is no such table."),
    "truncated": (truncated, "malformed|damaged"),
}


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "ledger.db"
    make(path)
    before = sorted(os.listdir(tmp_path)), path.read_bytes() if path.is_file() else b""
    with pytest.raises(UnreadableLedger, match=words) as caught:
        LedgerReader(path)
    assert str(path) in str(caught.value)
    assert (sorted(os.listdir(tmp_path)), path.read_bytes() if path.is_file() else b"") == before


def test_a_rollback_journal_that_is_still_needed_is_undone_on_a_copy_and_by_the_writer_in_place(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db", 100)
    cut_off = sqlite3.connect(path, isolation_level=None)
    cut_off.execute("PRAGMA cache_size = 1")
    cut_off.execute("PRAGMA writable_schema = ON")
    cut_off.execute("BEGIN IMMEDIATE")
    cut_off.execute("CREATE TABLE half(x)")
    cut_off.executemany("INSERT INTO half VALUES (?)", [("x" * 3000,)] * 50)
    copy = tmp_path / "copy.db"
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    cut_off.close()
    before = copy.read_bytes()
    with LedgerReader(copy) as reader:
        assert reader.head()[0] == len(list(reader.rows())) == 100
        assert reader.schema_objects() == schema.published() and "copy.db-journal" in reader.notices[0]
    assert copy.read_bytes() == before and (tmp_path / "copy.db-journal").exists()
    with LedgerWriter(copy) as writer:
        assert writer.head()[0] == 100


# --- hostile cells ----------------------------------------------------------------------------------------------------


def hostile(path: Path, *rows: tuple[str, ...]) -> Path:
    """A file with the ids and columns of a ledger but none of its rules; cells are SQL expressions."""
    connection = sqlite3.connect(path)
    connection.executescript(
        f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 1;"
        "CREATE TABLE events(seq INTEGER PRIMARY KEY, stream, version, type, recorded_at, payload, prev_hash, hash);"
        "CREATE TABLE artifacts(digest, media_type, size, codec, content);"
    )
    for cells in rows:
        table = "events" if len(cells) == 8 else "artifacts"
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join(cells)})")
    connection.commit()
    connection.close()
    return path


HONEST = ("'s'", "1", "'T'", "'now'", "'{}'", "'p'", "'h'")


@pytest.mark.parametrize("cell", ["NULL", "7", "7.5", "x'ff'", "x'6162'"])
def test_wrong_storage_classes_are_named_and_never_raise(tmp_path: Path, cell: str) -> None:
    rows = [("1", *HONEST), ("2", *[cell] * 7), ("3", *HONEST)]
    with LedgerReader(hostile(tmp_path / "ledger.db", *rows)) as reader:
        one, two, three = reader.rows()
    assert (one, three) == tuple(Row(seq, "s", 1, "T", "now", b"{}", "p", "h") for seq in (1, 3))
    expected = ["stream", "version", "type", "recorded_at", "payload", "prev_hash", "hash"]
    assert sorted(two.ill) == sorted(name for name in expected if not (cell == "7" and name == "version"))
    assert two.version == (7 if cell == "7" else 0)
    assert two.stream == {"x'ff'": "\udcff", "x'6162'": "ab"}.get(cell, "")


def test_text_that_is_not_utf8_keeps_its_bytes_and_the_rows_after_it(tmp_path: Path) -> None:
    bad = "CAST(x'61ff' AS TEXT)"
    rows = [("1", *HONEST), ("2", bad, "1", bad, bad, bad, bad, bad), ("3", *HONEST)]
    with LedgerReader(hostile(tmp_path / "ledger.db", *rows)) as reader:
        one, two, three = reader.rows()
        assert [row.seq for row in reader.rows()] == [1, 2, 3]
    assert (one.stream, three.stream, three.ill) == ("s", "s", ())
    assert two == Row(2, "a\udcff", 1, "a\udcff", "a\udcff", b"a\xff", "a\udcff", "a\udcff")
    assert len(event_hash(*two[:2][:1], two.version, two.prev_hash, two.stream, two.type, two.recorded_at, b"")) == 64


def test_hostile_heads_and_artifacts(tmp_path: Path) -> None:
    rows = [
        ("1", *HONEST[:6], "CAST(x'ff' AS TEXT)"),
        ("NULL", "7", "'x'", "NULL", "'text'"),
        (f"'{digest(b'abc')}'", "'text/plain'", "3", "'raw'", "x'616264'"),
        (f"'{digest(b'abd')}'", "'text/plain'", "'3'", "'raw'", "x'616264'"),
        (f"'{digest(b'')}'", "'text/plain'", "5", "'zlib'", "x'00'"),
    ]
    with LedgerReader(hostile(tmp_path / "ledger.db", *rows)) as reader:
        assert reader.head() == (1, "\udcff")
        nothing = next(row for row in reader.artifact_rows() if row.digest == "")
        assert nothing == ArtifactRow("", "", 0, "", b"text", ("digest", "media_type", "codec", "size", "content"))
        with pytest.raises(UnreadableLedger, match=f"its bytes have the digest {digest(b'abd')}"):
            reader.artifact(digest(b"abc"))
        with pytest.raises(UnreadableLedger, match="wrong storage class in size"):
            reader.artifact(digest(b"abd"))
        with pytest.raises(UnreadableLedger, match=f"artifact {digest(b'')}: artifact: .*cut off"):
            reader.artifact(digest(b""))


def test_an_event_that_is_not_understood_is_named_by_its_seq(tmp_path: Path) -> None:
    with LedgerReader(hostile(tmp_path / "ledger.db", ("1", *HONEST))) as reader:
        assert next(reader.rows()).type == "T"
        with pytest.raises(UnreadableLedger, match="event 1: event kind not understood: 'T'"):
            list(reader.recorded())


def test_one_byte_changed_on_disk_passes_sqlite_and_fails_the_chain(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    stored = path.read_bytes()
    assert stored.count(b'"round":1,') == 1
    path.write_bytes(stored.replace(b'"round":1,', b'"round":7,'))
    with LedgerReader(path) as reader:
        assert reader._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        broken = [row.seq for row in reader.rows() if row.hash != rehashed(row)]
    assert broken == [2]


def rehashed(row: Row) -> str:
    return event_hash(row.seq, row.version, row.prev_hash, row.stream, row.type, row.recorded_at, row.payload)


def test_an_exchanged_artifact_is_found(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    path.write_bytes(path.read_bytes().replace(b"source text", b"source tEXt"))
    with LedgerReader(path) as reader, pytest.raises(UnreadableLedger, match="the file was altered"):
        reader.artifact(digest(b"source text"))


# --- beside the file --------------------------------------------------------------------------------------------------


def unclosed(folder: Path) -> Path:
    """A copy of ledger and -wal, as a killed writer of three events leaves them; two are in the file, one beside it."""
    path = folder / "original.db"
    with LedgerWriter(path) as writer:
        writer.append(STREAM, 0, attempts(2))
        writer._connection.set_authorizer(None)
        writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.append(STREAM, 2, [attempt(2)])
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder / f"ledger.db{suffix}")
    path.unlink()
    return folder / "ledger.db"


def test_a_killed_writers_file_is_read_with_its_wal(tmp_path: Path) -> None:
    with LedgerReader(unclosed(tmp_path)) as reader:
        assert [item.event for item in reader.recorded()] == attempts(3)
        assert reader.notices == ()


def read_as_nobody(path: Path) -> str:
    """What a process without any rights to write says: the seq of the head, or the error."""
    receive, send = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            with LedgerReader(path) as reader:
                answer = f"{reader.head()[0]} {len(reader.notices)}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
            answer = f"{type(error).__name__}: {error}"
        os.write(send, answer.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        return pipe.read()


def test_b98_read_only_media(tmp_path: Path) -> None:
    """A closed ledger, and an unclosed one without -wal, can be read where nothing may be written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "closed.db")
        shutil.copy(unclosed(tmp_path), folder / "unclosed.db")
        for path in (*folder.iterdir(), folder):
            path.chmod(0o555)
        before = sorted(os.listdir(folder))
        assert read_as_nobody(folder / "closed.db") == "3 0"
        assert read_as_nobody(folder / "unclosed.db") == "2 1"
        assert sorted(os.listdir(folder)) == before
        folder.chmod(0o755)


def test_b98_read_only_media_with_a_wal_say_what_is_needed(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in unclosed(tmp_path).parent.iterdir():
            shutil.copy(file, folder)
        for path in (*folder.iterdir(), folder):
            path.chmod(0o555)
        answer = read_as_nobody(folder / "ledger.db")
        assert answer.startswith("UnreadableLedger")
        assert "copy ledger.db and ledger.db-wal together" in answer
        folder.chmod(0o755)
