"""The writer: durable settings, optimistic concurrency, total idempotency, one file at the end."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import gpusolver
from gpusolver.events import GENESIS, Artifact, BadInput, ConcurrencyConflict, UnreadableLedger, digest, event_hash
from gpusolver.events.clock import utc_now
from gpusolver.events.lock import WriterLock
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import CELL, STREAM, attempt, attempts, fill, judged

ROOT = Path(gpusolver.__file__).parent.parent


def stamps() -> str:
    return "2026-01-01T00:00:00.000Z"


def test_rows_are_chained_and_numbered(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path, clock=stamps) as ledger:
        assert ledger.head() == (0, GENESIS)
        assert ledger.append(STREAM, 0, attempts(2)) == [1, 2]
        assert ledger.append("run2", 0, [attempt(7)]) == [3]
        assert ledger.append(STREAM, 2, [attempt(2)]) == [4]
        assert (ledger.version(STREAM), ledger.version("run2"), ledger.version("run3")) == (3, 1, 0)
        head = ledger.head()
    with LedgerReader(path) as reader:
        rows = list(reader.rows())
    assert [(row.seq, row.stream, row.version, row.recorded_at) for row in rows] == [
        (1, STREAM, 1, stamps()),
        (2, STREAM, 2, stamps()),
        (3, "run2", 1, stamps()),
        (4, STREAM, 3, stamps()),
    ]
    previous = GENESIS
    for row in rows:
        assert row.prev_hash == previous
        previous = event_hash(row.seq, row.version, previous, row.stream, row.type, row.recorded_at, row.payload)
        assert row.hash == previous
    assert head == (4, previous)


def test_reading_on_the_writers_side(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger.append(STREAM, 0, attempts(2), [(b"kernel", "text/x-python")])
        ledger.append("run2", 0, [attempt(7)])
        assert [(item.seq, item.event) for item in ledger.events()] == [
            (1, attempt(0)),
            (2, attempt(1)),
            (3, attempt(7)),
        ]
        assert [item.version for item in ledger.events(STREAM)] == [1, 2]
        assert ledger.events("run3") == []
        assert ledger.artifact(digest(b"kernel")) == b"kernel"
        with pytest.raises(BadInput, match=f"no artifact {'0' * 64}"):
            ledger.artifact("0" * 64)


def test_durable_settings_are_in_force(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger._connection.set_authorizer(None)
        assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events",
        "DROP TABLE events",
        "DROP TRIGGER events_append",
        "ALTER TABLE events ADD COLUMN more TEXT",
        "CREATE TABLE more(x)",
        "CREATE TEMP TRIGGER quiet BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = ON",
        "PRAGMA synchronous = OFF",
        "VACUUM INTO '/nonexistent/copy.db'",
    ],
)
def test_the_writers_own_connection_refuses(tmp_path: Path, attack: str) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger.append(STREAM, 0, attempts(1))
        with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|authorization denied"):
            ledger._connection.execute(attack)
        assert ledger.append(STREAM, 1, [attempt(1)]) == [2]


# --- versions and retries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expected", "found"), [(0, 2), (1, 2), (3, 2)])
def test_a_stream_that_is_elsewhere_is_a_conflict(tmp_path: Path, expected: int, found: int) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger.append(STREAM, 0, attempts(2))
        head = ledger.head()
        with pytest.raises(ConcurrencyConflict, match=f"'{STREAM}': expected version {expected}, found {found}"):
            ledger.append(STREAM, expected, [attempt(9)], [(b"lost", "text/plain")])
        assert ledger.head() == head
        with pytest.raises(BadInput, match="no artifact"):
            ledger.artifact(digest(b"lost"))


def test_a_retry_lands_once_even_after_later_events(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        first = ledger.append(STREAM, 0, attempts(3))
        ledger.append(STREAM, 3, [judged(1)])
        head = ledger.head()
        assert ledger.append(STREAM, 0, attempts(3)) == first == [1, 2, 3]
        assert ledger.append(STREAM, 1, attempts(3)[1:]) == [2, 3]
        assert ledger.head() == head


@pytest.mark.parametrize(
    ("expected", "events"),
    [(0, [attempt(0), attempt(9)]), (2, [attempt(2), attempt(3)]), (0, [judged(1)]), (1, [])],
    ids=["differs", "partly there", "other type", "nothing"],
)
def test_a_retry_that_is_not_the_same_is_a_conflict(tmp_path: Path, expected: int, events: list[object]) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger.append(STREAM, 0, attempts(3))
        with pytest.raises(ConcurrencyConflict):
            ledger.append(STREAM, expected, events)  # type: ignore[arg-type]
        assert ledger.head()[0] == 3


def test_what_another_program_appended_meanwhile_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, attempts(1))
        previous = ledger.head()[1]
        other = sqlite3.connect(path)
        row = (2, "run9", 1, "X", "t", "{}", previous, "c" * 64)
        other.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        other.commit()
        assert ledger.append(STREAM, 1, [attempt(1)]) == [3]
        row = (4, STREAM, 3, "X", "t", "{}", ledger.head()[1], "d" * 64)
        other.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        other.commit()
        other.close()
        with pytest.raises(ConcurrencyConflict, match="expected version 2, found 3"):
            ledger.append(STREAM, 2, [attempt(2)])
        assert ledger.append(STREAM, 3, attempts(2)) == [5, 6]


def test_several_streams_land_together_or_not_at_all(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        batches = [("run1", 0, attempts(2)), ("run2", 0, attempts(1)), ("run1", 2, [attempt(2)])]
        assert ledger.append_many(batches) == [1, 2, 3, 4]
        assert ledger.append_many(batches) == [1, 2, 3, 4]
        with pytest.raises(ConcurrencyConflict, match="'run2': expected version 5, found 1"):
            ledger.append_many([("run1", 3, [attempt(3)]), ("run2", 5, [attempt(1)])])
        assert (ledger.version("run1"), ledger.head()[0]) == (3, 4)


def test_an_event_that_cannot_be_recorded_takes_its_whole_transaction_along(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        with pytest.raises(BadInput, match=r"field interval\.lower: expected a finite number"):
            ledger.append(STREAM, 0, [attempt(0), judged(1, ratio=float("nan"))], [(b"x", "text/plain")])
        assert ledger.head()[0] == 0
        assert ledger.append(STREAM, 0, [attempt(0)]) == [1]


def test_an_interrupt_within_a_transaction_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:

        def interrupted() -> tuple[int, str]:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(ledger, "head", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.append(STREAM, 0, attempts(1), [(b"x", "text/plain")])
        with pytest.raises(BadInput, match="no artifact"):
            ledger.artifact(digest(b"x"))
        assert ledger.append(STREAM, 0, attempts(1)) == [1]


@pytest.mark.parametrize("stream", ["", "run\u00e9", "run\n1", "run\x00"])
def test_streams_are_printable_ascii(tmp_path: Path, stream: str) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger, pytest.raises(BadInput, match="expected printable ASCII"):
        ledger.append(stream, 0, attempts(1))


def test_the_clock_is_checked_too(tmp_path: Path) -> None:
    with (
        LedgerWriter(tmp_path / "ledger.db", clock=lambda: "10 \u00b5s") as ledger,
        pytest.raises(BadInput, match="recorded_at"),
    ):
        ledger.append(STREAM, 0, attempts(1))


def test_the_default_clock_is_utc_in_milliseconds() -> None:
    import datetime

    stamp = utc_now()
    assert len(stamp) == len("2026-01-01T00:00:00.000Z") and stamp.endswith("Z")
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(stamp)
    assert abs(age.total_seconds()) < 60


# --- artifacts --------------------------------------------------------------------------------------------------------


def test_an_artifact_is_stored_once(tmp_path: Path) -> None:
    log = b"line of a compiler\n" * 1000
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, [attempt(0)], [(log, "text/plain"), Artifact(log, "text/x-other")])
        ledger.append(STREAM, 1, [attempt(1)], [(log, "text/x-third")])
        ledger.append(STREAM, 2, [], [(b"", "text/plain")])
    with LedgerReader(path) as reader:
        stored = {row.digest: row for row in reader.artifact_rows()}
        assert reader.artifact(digest(log)) == log
        assert reader.artifact(digest(b"")) == b""
    assert set(stored) == {digest(log), digest(b"")}
    assert (stored[digest(log)].media_type, stored[digest(log)].size) == ("text/plain", len(log))
    assert stored[digest(log)].codec == "zlib" and len(stored[digest(log)].content) < len(log) / 50


# --- opening and closing ----------------------------------------------------------------------------------------------


def test_one_file_is_left_after_closing(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    assert os.listdir(tmp_path) == ["ledger.db"]
    with LedgerWriter(path) as ledger:
        assert ledger.append(STREAM, 3, [attempt(3)]) == [4]
        ledger.close()
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_closing_beside_a_reader_warns_and_names_the_second_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = LedgerWriter(path, busy_timeout_s=0.05)
    ledger.append(STREAM, 0, attempts(3))
    reading = sqlite3.connect(path, isolation_level=None)
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM events").fetchone()
    with pytest.warns(UserWarning, match="ledger.db-wal belongs to it"):
        ledger.close()
    reading.close()  # the last to close: SQLite moves everything into the file, but leaves its header as it is
    with pytest.warns(UserWarning, match="was not closed by its writer"), LedgerWriter(path) as again:
        assert again.head()[0] == 3
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_a_second_writer_is_told_who_holds_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        with pytest.raises(ConcurrencyConflict, match=f"being written by process {os.getpid()}"):
            LedgerWriter(path)
        script = "import sys; from gpusolver.events.writer import LedgerWriter; LedgerWriter(sys.argv[1])"
        second = subprocess.run(
            [sys.executable, "-c", script, path], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert second.returncode == 1
        assert f"ConcurrencyConflict: {path} is being written by process {os.getpid()}" in second.stderr
        assert ledger.append(STREAM, 0, attempts(1)) == [1]
    LedgerWriter(path).close()


def test_a_lock_file_that_a_dead_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "ledger.db.lock").write_text("999999\n")
    fill(tmp_path / "ledger.db")
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_releasing_leaves_another_holders_lock_file_alone(tmp_path: Path) -> None:
    first = WriterLock(tmp_path / "ledger.db")
    first.path.unlink()  # as a careless person would
    second = WriterLock(tmp_path / "ledger.db")
    first.release()
    with pytest.raises(ConcurrencyConflict):
        WriterLock(tmp_path / "ledger.db")
    second.release()
    assert os.listdir(tmp_path) == []


def test_a_lock_won_on_a_file_that_is_gone_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    holder = WriterLock(tmp_path / "ledger.db")
    real, calls = fcntl.flock, []

    def released_just_before(fd: int, how: int) -> None:
        calls.append(fd)
        if len(calls) == 1:
            holder.release()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", released_just_before)
    winner = WriterLock(tmp_path / "ledger.db")
    assert len(calls) == 2
    with pytest.raises(ConcurrencyConflict):
        WriterLock(tmp_path / "ledger.db")
    winner.release()


@pytest.mark.parametrize("where", ["", "absent/ledger.db"])
def test_paths_that_cannot_be_a_ledger(tmp_path: Path, where: str) -> None:
    with pytest.raises(BadInput, match=r"is a directory|does not exist"):
        LedgerWriter(tmp_path / where)
    assert os.listdir(tmp_path) == []


def test_foreign_files_are_refused_and_left_as_they_were(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database, but long enough to look at" * 10)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE events(seq)")
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(UnreadableLedger, match="is not a ledger"):
            LedgerWriter(path)
        assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "other.db"]


def test_a_newer_layout_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    before = path.read_bytes()
    for opened in (LedgerWriter, LedgerReader):
        with pytest.raises(UnreadableLedger, match="schema version 2, expected 1: a newer gpusolver wrote it"):
            opened(path)
    assert path.read_bytes() == before


def test_making_that_was_cut_off_is_made_good(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    fill(path)
    with LedgerReader(path) as reader:
        assert reader.head()[0] == 3


def test_a_path_with_marks_that_mean_something_in_uris(tmp_path: Path) -> None:
    path = fill(tmp_path / "a ledger?mode=rw#100%.db")
    with LedgerReader(path) as reader:
        assert [item.event for item in reader.recorded()] == attempts(3)
        assert CELL.arm == "on"
