"""Faults that other projects met with ledgers and logs, by their numbers in the project's list of faults."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusolver.events import BadInput, ConcurrencyConflict, ToolFailed, UnreadableLedger, digest, opening
from gpusolver.events.model import RoundAttempted, RoundJudged, RunStopped
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import STREAM, attempt, attempts, fill, judged


def test_b95_a_held_database_is_waited_for(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    with LedgerWriter(path) as ledger:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        release.start()
        begun = time.monotonic()
        assert ledger.append(STREAM, 3, [attempt(3)]) == [4]
        assert time.monotonic() - begun >= 0.2
        release.join()
        other.close()


def test_b95_after_the_limit_the_error_is_clear_and_the_event_can_be_appended_again(tmp_path: Path) -> None:
    path = fill(tmp_path / "ledger.db")
    with LedgerWriter(path, busy_timeout_s=0.05) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConcurrencyConflict, match=r"another program has held the database for 0\.05 s"):
            ledger.append(STREAM, 3, [attempt(3)])
        other.execute("ROLLBACK")
        other.close()
        assert ledger.append(STREAM, 3, [attempt(3)]) == [4]


def test_b97_a_copy_without_its_wal_says_what_is_missing(tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with LedgerWriter(path) as ledger:
        ledger._connection.set_authorizer(None)
        ledger._connection.execute("PRAGMA wal_autocheckpoint = 0")
        ledger.append(STREAM, 0, attempts(5))
        head = ledger.head()
        shutil.copy(path, copy)
        with LedgerReader(copy) as reader:
            assert reader.head() != head  # an outside anchor shows it; the file alone can only say what to look for
            assert "copy.db-wal" in reader.notices[0] and "newest events are missing" in reader.notices[0]
        shutil.copy(f"{path}-wal", f"{copy}-wal")
        with LedgerReader(copy) as reader:
            assert (reader.head(), reader.notices) == (head, ())


class WithoutLocks(sqlite3.Connection):
    """SQLite on a network file system without the locks that WAL needs."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if "journal_mode = WAL" in sql:
            raise sqlite3.OperationalError("locking protocol")
        return super().execute(sql, *parameters)


def test_b100_a_network_file_system_is_named_and_no_half_made_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "connect", lambda path, timeout_s: sqlite3.connect(path, factory=WithoutLocks))
    with pytest.raises(BadInput, match=r"network file systems .* local disk"):
        LedgerWriter(tmp_path / "ledger.db")
    assert os.listdir(tmp_path) == []


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    for index in range(offset, offset + 64):
        content[index] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("harm", ["inner page", "truncated"])
def test_b101_a_damaged_ledger_is_neither_appended_to_nor_touched(tmp_path: Path, harm: str) -> None:
    path = fill(tmp_path / "ledger.db", 500)
    if harm == "truncated":
        os.truncate(path, path.stat().st_size - 4096)
    else:
        flip(path, 4096)  # the header of page 2
    before = path.read_bytes()
    for opened in (LedgerWriter, LedgerReader):
        with pytest.raises(UnreadableLedger, match=r"(malformed|damaged)(.|\n)*\.recover"):
            opened(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["ledger.db"]


def limit_pages(ledger: LedgerWriter, more: int) -> None:
    """Let the file grow by `more` pages only, as a full disk would."""
    connection = ledger._connection
    connection.set_authorizer(None)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + more}")


def test_b102_a_full_disk_rolls_the_whole_round_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    noise = random.Random(0).randbytes(100_000)
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, [attempt(0)])
        limit_pages(ledger, 5)
        big = RunStopped(run="run1", cell=None, reason=noise.hex(), rule=None)
        with pytest.raises(ToolFailed, match="ledger full at event 4"):
            ledger.append(STREAM, 1, [attempt(1), attempt(2), big])
        with pytest.raises(ToolFailed, match="ledger full at event 2"):
            ledger.append(STREAM, 1, [attempt(1)], [(noise, "application/octet-stream")])
        assert (ledger.head()[0], ledger.version(STREAM)) == (1, 1)
        assert ledger.append(STREAM, 1, [attempt(1)]) == [2]  # what still fits is taken
        limit_pages(ledger, 1000)
        assert ledger.append(STREAM, 2, [attempt(2)], [(noise, "application/octet-stream")]) == [3]
    with LedgerReader(path) as reader:
        assert [item.event for item in reader.recorded()] == attempts(3)
        assert reader.artifact(digest(noise)) == noise


def test_b104_nan_never_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        for number in (float("nan"), float("inf")):
            with pytest.raises(BadInput, match=r"field interval\.lower: expected a finite number, found (nan|inf)"):
                ledger.append(STREAM, 0, [judged(1, ratio=number)])
        ledger.append(STREAM, 0, [judged(1, ratio=1.5)])
    with LedgerReader(path) as reader:
        for row in reader.rows():
            json.loads(row.payload, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_b106_the_stored_bytes_are_hashed_however_numbers_are_spelt(tmp_path: Path) -> None:
    """Another program's spelling of 1.0, 1e-7 and 1.2345678901234568e20 is hashed as it stands."""
    path = fill(tmp_path / "ledger.db", 1)
    connection = sqlite3.connect(path)
    previous = connection.execute("SELECT hash FROM events").fetchone()[0]
    payload = "[1, 1.0, 1e-07, 0.0000001, 123456789012345680000]"
    start = f"gpusolver-event-1\n2\n1\n{previous}\n4:run2\n1:X\n1:t\n{len(payload)}:"
    stored_hash = sha256((start + payload).encode()).hexdigest()
    row = (2, "run2", 1, "X", "t", payload, previous, stored_hash)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    with LedgerReader(path) as reader:
        assert list(reader.rows())[1].payload == payload.encode()
        assert reader.head() == (2, stored_hash)


def test_b109_the_same_again_is_idempotent_and_another_under_its_name_is_an_error(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        assert ledger.append(STREAM, 0, [attempt(0)]) == ledger.append(STREAM, 0, [attempt(0)]) == [1]
        with pytest.raises(ConcurrencyConflict, match="not what was to be appended"):
            ledger.append(STREAM, 0, [attempt(0, incumbent="c" * 64)])
        assert [item.event for item in ledger.events()] == [attempt(0)]


def test_b112_order_is_by_seq_when_the_clock_goes_back(tmp_path: Path) -> None:
    times = iter(["2026-01-01T00:00:02.000Z", "2026-01-01T00:00:01.000Z", "2026-01-01T00:00:01.000Z"])
    path = tmp_path / "ledger.db"
    with LedgerWriter(path, clock=lambda: next(times)) as ledger:
        for index in range(3):
            ledger.append(STREAM, index, [attempt(index)])
        assert [item.event for item in ledger.events()] == attempts(3)
    with LedgerReader(path) as reader:
        assert [item.event for item in reader.recorded()] == attempts(3)


def test_b114_an_older_layout_is_named_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA application_id = 0x67707531; PRAGMA user_version = 1;"
        "CREATE TABLE events(seq INTEGER PRIMARY KEY, stream, version, type, recorded_at, payload, prev_hash);"
    )
    connection.close()
    before = path.read_bytes()
    for opened in (LedgerWriter, LedgerReader):
        with pytest.raises(
            UnreadableLedger, match=r"table events has the columns seq, .*, prev_hash; expected .*, hash"
        ):
            opened(path)
    assert path.read_bytes() == before


def test_b116_long_logs_are_stored_once_and_compressed_and_listing_stays_quick(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    logs = [f"ptxas info: round {index} register spill\n".encode() * 25_000 for index in range(30)]  # about 1 MB each
    with LedgerWriter(path) as ledger:
        for index in range(300):
            log = logs[index % len(logs)]
            event = judged(index)
            ledger.append(STREAM, index, [event], [(log, "text/plain")] if index < 60 else [])
    assert path.stat().st_size < 2_000_000  # 60 MB of logs, 30 of them different
    connection = sqlite3.connect(path)
    begun = time.monotonic()
    assert len(connection.execute("SELECT * FROM rounds").fetchall()) == 300
    assert time.monotonic() - begun < 1
    connection.close()


def test_b118_a_compilers_bytes_are_kept_raw(tmp_path: Path) -> None:
    said = b"err \xd3\n"
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        ledger.append(STREAM, 0, [attempt(0)], [(said, "application/octet-stream")])
        assert ledger.artifact(digest(said)) == said


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**200])
def test_b120_numbers_beyond_sqlites_integers_are_recorded_exactly(tmp_path: Path, number: int) -> None:
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, [msgspec.structs.replace(attempt(0), round=number)])
    with LedgerReader(path) as reader:
        (item,) = reader.recorded()
        assert isinstance(item.event, RoundAttempted) and item.event.round == number


def test_an_attempt_is_there_before_its_round_and_stays_when_the_round_is_lost(tmp_path: Path) -> None:
    """The ground of resuming (B113): after a kill between the two transactions the open attempt can be seen."""
    path = tmp_path / "ledger.db"
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, [attempt(7)])
        with pytest.raises(BadInput):
            ledger.append(STREAM, 1, [judged(7, ratio=float("nan"))])
    with LedgerReader(path) as reader:
        events = [item.event for item in reader.recorded(STREAM)]
    assert events == [attempt(7)]
    assert not any(isinstance(event, RoundJudged) for event in events)
