"""What an adversary, or an accident, puts beside, behind or in place of a ledger: it is refused, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusolver.events import BadInput, ConcurrencyConflict, ToolFailed, UnreadableLedger, digest
from gpusolver.events.lock import WriterLock
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LOOK_AGAIN_S, LedgerWriter

from .examples import STREAM, attempt, attempts, fill


def killed(path: Path, count: int = 3) -> Path:
    """The ledger and -wal of a writer that was killed: its head is in the -wal alone."""
    source = path.with_name("source.db")
    with LedgerWriter(source) as ledger:
        ledger.append(STREAM, 0, attempts(count))
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    source.unlink()
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- beside the ledger ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "empty"])
def test_a_wal_beside_a_file_that_has_none_is_not_applied(tmp_path: Path, closed: bool) -> None:
    path = fill(tmp_path / "ledger.db", 9) if closed else tmp_path / "ledger.db"
    path.touch()
    killed(tmp_path / "old.db")
    (tmp_path / "old.db-wal").rename(tmp_path / "ledger.db-wal")
    before = contents(tmp_path)
    with pytest.raises(UnreadableLedger, match=r"ledger\.db-wal does not belong to"):
        LedgerWriter(path)
    with pytest.raises(
        UnreadableLedger, match=r"ledger\.db-wal does not belong to" if closed else "no SQLite database"
    ):
        LedgerReader(path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_new_ledger_destroys_nothing_that_lies_at_its_name(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"ledger.db{suffix}").write_bytes(b"the newest events of a file that was moved away")
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=f"ledger.db{suffix} is there without ledger.db"):
        LedgerWriter(tmp_path / "ledger.db")
    assert contents(tmp_path) == before


def test_an_old_rollback_journal_takes_no_event_back(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db", 50)
    other = sqlite3.connect(path, isolation_level=None)
    other.executescript("PRAGMA cache_size = 1; BEGIN IMMEDIATE;")
    previous = other.execute("SELECT hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()[0]
    for seq in range(51, 99):
        row = (seq, STREAM, seq, "X", "t", "x" * 900, previous, previous)
        other.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    shutil.copy(f"{path}-journal", tmp_path / "journal")
    other.execute("COMMIT")
    other.close()
    (tmp_path / "journal").rename(tmp_path / "ledger.db-journal")
    before = contents(tmp_path)
    with pytest.raises(UnreadableLedger, match=r"ledger\.db-journal does not belong to .* would take events back"):
        LedgerWriter(path)
    with pytest.raises(UnreadableLedger, match=r"ledger\.db-journal does not belong"):
        LedgerReader(path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("written", ["some pages", "all pages"])
def test_a_ledger_that_was_killed_while_it_was_made_is_made_anew(tmp_path: Path, written: str) -> None:
    """The kill came before the first commit ended, and the journal says that the file was empty: undone, it is that again."""
    made, path = tmp_path / "made.db", tmp_path / "ledger.db"
    connection = sqlite3.connect(made, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE t(x)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,) for _ in range(50)])  # more than the cache holds
    shutil.copy(f"{made}-journal", f"{path}-journal")
    if written == "all pages":
        connection.execute("COMMIT")
    shutil.copy(made, path)
    connection.close()
    assert path.read_bytes().startswith(b"SQLite format 3") == (written == "all pages")
    assert path.stat().st_size > 0 < Path(f"{path}-journal").stat().st_size
    with LedgerWriter(path) as ledger:
        assert ledger.append(STREAM, 0, [attempt(0)]) == [1]
    with LedgerReader(path) as reader:
        assert [item.event for item in reader.recorded()] == [attempt(0)]
    assert sorted(os.listdir(tmp_path)) == ["ledger.db", "made.db"]


def test_a_writer_says_that_a_wal_may_have_been_left_behind(tmp_path: Path) -> None:
    path = killed(tmp_path / "ledger.db")
    Path(f"{path}-wal").unlink()
    with pytest.warns(UserWarning, match="the newest events are missing") as caught:
        LedgerWriter(path).close()
    assert caught[0].filename == __file__


# --- other names of the ledger ----------------------------------------------------------------------------------------


def test_a_symbolic_link_stands_for_the_file_behind_it(tmp_path: Path) -> None:
    path = killed(tmp_path / "ledger.db")
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link.db"
    link.symlink_to(path)
    with LedgerReader(link) as reader:
        assert (reader.head()[0], reader.notices) == (3, ())
    with LedgerWriter(path), pytest.raises(ConcurrencyConflict, match=f"process {os.getpid()}"):
        LedgerWriter(link)
    with LedgerWriter(link) as ledger:
        assert ledger.append(STREAM, 3, [attempt(3)]) == [4]
    assert (sorted(os.listdir(tmp_path)), os.listdir(tmp_path / "sub")) == (["ledger.db", "sub"], ["link.db"])


def test_a_hard_link_makes_no_second_writer(tmp_path: Path) -> None:
    path, other = fill(tmp_path / "ledger.db"), tmp_path / "other.db"
    with LedgerWriter(path) as ledger:
        os.link(path, other)
        with pytest.raises(BadInput, match="has 2 names"):
            LedgerWriter(other)
        assert ledger.append(STREAM, 3, [attempt(3)]) == [4]
    other.unlink()
    with LedgerWriter(path) as ledger:
        assert ledger.head()[0] == 4


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger.db")
    with pytest.raises(BadInput, match="is a pipe, socket or device"):
        LedgerWriter(tmp_path / "ledger.db")
    with pytest.raises(UnreadableLedger, match="is a pipe, socket or device"):
        LedgerReader(tmp_path / "ledger.db")
    assert os.listdir(tmp_path) == ["ledger.db"]


# --- while a writer is at work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal", "ledger.db.lock"])
@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "removed"])
def test_a_file_that_goes_missing_is_noticed_before_the_acknowledgement(
    tmp_path: Path, name: str, replaced: bool
) -> None:
    ledger = LedgerWriter(tmp_path / "ledger.db")
    ledger.append(STREAM, 0, attempts(1))
    kept = (tmp_path / name).rename(tmp_path / "kept")
    if replaced:
        (tmp_path / name).touch()
    time.sleep(LOOK_AGAIN_S)
    for _ in range(2):
        with pytest.raises(ToolFailed, match=f"{name} was removed, renamed or replaced"):
            ledger.append(STREAM, 1, [attempt(1)])
    kept.rename(tmp_path / name)
    assert ledger.append(STREAM, 1, [attempt(1)]) == [2]
    ledger.close()
    with LedgerReader(tmp_path / "ledger.db") as reader:
        assert [item.event for item in reader.recorded()] == attempts(2)
    assert os.listdir(tmp_path) == ["ledger.db"]


def test_closing_a_ledger_that_was_renamed_is_an_error_and_leaves_it_whole(tmp_path: Path) -> None:
    ledger = LedgerWriter(tmp_path / "ledger.db")
    ledger.append(STREAM, 0, attempts(3))
    (tmp_path / "ledger.db").rename(tmp_path / "renamed.db")
    with pytest.raises(ToolFailed, match=r"ledger\.db was removed, renamed or replaced"):
        ledger.close()
    ledger.close()
    with LedgerReader(tmp_path / "renamed.db") as reader:
        assert [item.event for item in reader.recorded()] == attempts(3)


def test_closing_a_ledger_that_was_removed_is_an_error_and_keeps_its_wal(tmp_path: Path) -> None:
    ledger = LedgerWriter(tmp_path / "ledger.db")
    ledger.append(STREAM, 0, attempts(3))
    (tmp_path / "ledger.db").unlink()
    wal = (tmp_path / "ledger.db-wal").read_bytes()
    with pytest.raises(ToolFailed, match=r"ledger\.db was removed, renamed or replaced"):
        ledger.close()
    assert (tmp_path / "ledger.db-wal").read_bytes() == wal
    assert not (tmp_path / "ledger.db.lock").exists()


READINGS: dict[str, Callable[[LedgerWriter], object]] = {
    "append": lambda ledger: ledger.append(STREAM, 3, attempts(1)),
    "version": lambda ledger: ledger.version(STREAM),
    "head": lambda ledger: ledger.head(),
    "events": lambda ledger: ledger.events(),
    "artifact": lambda ledger: ledger.artifact("0" * 64),
}


@pytest.mark.parametrize("use", READINGS.values(), ids=READINGS)
def test_every_failure_of_sqlite_is_told_in_words(tmp_path: Path, use: Callable[[LedgerWriter], object]) -> None:
    with LedgerWriter(fill(tmp_path / "ledger.db")) as ledger:
        pass
    with pytest.raises(ToolFailed, match=r"ledger\.db: SQLite failed.*: Cannot operate on a closed"):
        use(ledger)


# --- within the ledger ------------------------------------------------------------------------------------------------


def test_an_event_does_not_rest_on_an_artifact_of_other_bytes(tmp_path: Path) -> None:
    path, wanted = fill(tmp_path / "ledger.db"), b"x" * 100
    connection = sqlite3.connect(path)
    row = (digest(wanted), "text/plain", 3, "raw", b"bad")
    connection.execute("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    with LedgerWriter(path) as ledger:
        with pytest.raises(UnreadableLedger, match=f"artifact {digest(wanted)}: its bytes have the digest"):
            ledger.append(STREAM, 3, [attempt(3)], [(wanted, "text/plain")])
        assert ledger.head()[0] == 3


def test_an_index_that_lacks_rows_is_damage(tmp_path: Path) -> None:
    """Made partial behind SQLite's back, with the published text put back: versions and views would be read from it."""
    path = fill(tmp_path / "ledger.db")
    connection = sqlite3.connect(path, isolation_level=None)
    (text,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'events_by_stream'").fetchone()
    connection.executescript(f"DROP INDEX events_by_stream; {text} WHERE version < 3; PRAGMA writable_schema = ON;")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'events_by_stream'", (text,))
    connection.close()
    with pytest.raises(UnreadableLedger, match=r"damaged: .*index events_by_stream"):
        LedgerWriter(path)


# --- the lock ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "file", "pipe"])
def test_what_is_no_lock_file_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    (tmp_path / "precious").write_text("12" if kind == "hard link" else "precious and long enough")
    lock = tmp_path / "ledger.db.lock"
    make: dict[str, Callable[[], object]] = {
        "symbolic link": lambda: lock.symlink_to(tmp_path / "precious"),
        "hard link": lambda: os.link(tmp_path / "precious", lock),
        "file": lambda: shutil.copy(tmp_path / "precious", lock),
        "pipe": lambda: os.mkfifo(lock),
    }
    make[kind]()
    before = (tmp_path / "precious").read_bytes()
    with pytest.raises(BadInput, match=r"ledger\.db\.lock is where a writer keeps its lock, and is something else"):
        LedgerWriter(tmp_path / "ledger.db")
    assert (tmp_path / "precious").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["ledger.db.lock", "precious"]


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_a_full_disk_leaves_no_lock_and_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(ToolFailed, match=r"No space left on device; make room on the disk"):
            LedgerWriter(tmp_path / "ledger.db")
    assert os.listdir(tmp_path) == []
    WriterLock(tmp_path / "ledger.db").release()
