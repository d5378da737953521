"""What the ledger costs, as ratios against raw sqlite3 in the same run; prints its figures (`pytest -m bench -s`)."""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gpusolver.events import GENESIS, decode, encode, event_hash
from gpusolver.events.model import Interval, NoiseFloorMeasured
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from tests.events.examples import CELL, STREAM

pytestmark = pytest.mark.bench

APPENDS = 25
TURNS = 80
EVENTS = 60_000


def event(round_: int) -> NoiseFloorMeasured:
    """An event of about 375 bytes."""
    return NoiseFloorMeasured(
        cell=CELL,
        round=round_,
        source="a" * 64,
        samples="b" * 64,
        interval=Interval(lower=0.9941, median=1.0003, upper=1.0062, blocks=20, rank=6),
        floor=0.0062,
    )


class RawSqlite:
    """The least that a durable log of events in sqlite3 can be: the same columns and pragmas, each event encoded once.

    No hash, no guard, no index, no proof that what was encoded can be read again.
    """

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        columns = "stream TEXT, version INTEGER, type TEXT, recorded_at TEXT, payload TEXT, prev_hash TEXT, hash TEXT"
        self.connection.execute(f"CREATE TABLE events(seq INTEGER PRIMARY KEY, {columns})")
        self.encoder = msgspec.json.Encoder()

    def append(self, seq: int) -> None:
        payload = self.encoder.encode(event(seq)).decode()
        row = (seq, STREAM, seq, "NoiseFloorMeasured", "2026-01-01T00:00:00.000Z", payload, GENESIS, GENESIS)
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.connection.execute("COMMIT")


def seconds(append: Callable[[int], object], first: int) -> float:
    begun = time.perf_counter()
    for index in range(first, first + APPENDS):
        append(index)
    return time.perf_counter() - begun


def durable_append_ratio(folder: Path) -> tuple[float, float, float]:
    """(median of ratios, our appends/s, raw appends/s) over short interleaved turns: a slow moment meets both."""
    folder.mkdir()
    raw = RawSqlite(folder / "raw.db")
    ours, theirs = [], []
    with LedgerWriter(folder / "ledger.db") as ledger:

        def our_append(index: int) -> None:
            ledger.append(STREAM, index, [event(index)])

        for turn in range(0, TURNS * APPENDS, APPENDS):
            theirs.append(seconds(lambda index: raw.append(index + 1), turn))
            ours.append(seconds(our_append, turn))
    raw.connection.close()
    ratio = statistics.median(their / our for our, their in zip(ours, theirs, strict=True))
    return ratio, APPENDS / statistics.median(ours), APPENDS / statistics.median(theirs)


def test_a_durable_append_against_raw_sqlite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = sorted(durable_append_ratio(tmp_path / str(run)) for run in range(5))
    ratio, ours, theirs = runs[2]
    with capsys.disabled():
        print(
            f"\nsingle durable append: {ours:,.0f}/s, raw sqlite3 {theirs:,.0f}/s, median ratio {ratio:.3f} in the median of "
            f"five runs ({', '.join(f'{run[0]:.3f}' for run in runs)}); {len(encode(event(0)))} byte payloads"
        )
    assert ratio >= 0.8


def read_chain_decode_fold(path: Path) -> float:
    """Events a second on one core: every hash checked, every event decoded and folded."""
    with LedgerReader(path) as reader:
        begun = time.process_time()
        previous, rounds = GENESIS, 0
        for row in reader.rows():
            previous = event_hash(row.seq, row.version, previous, row.stream, row.type, row.recorded_at, row.payload)
            assert previous == row.hash
            folded = decode(row.type, row.payload)
            if isinstance(folded, NoiseFloorMeasured) and folded.floor < 0.01:
                rounds += 1
        spent = time.process_time() - begun
    assert rounds == EVENTS
    return EVENTS / spent


def test_read_chain_decode_fold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ledger.db"
    begun = time.perf_counter()
    with LedgerWriter(path) as ledger:
        for first in range(0, EVENTS, 1000):
            ledger.append(STREAM, first, [event(index) for index in range(first, first + 1000)])
    writing = EVENTS / (time.perf_counter() - begun)
    reading = statistics.median(read_chain_decode_fold(path) for _ in range(5))
    with capsys.disabled():
        print(
            f"\nread + chain + decode + fold: {reading:,.0f} events/s on one core; batches of 1,000 written at "
            f"{writing:,.0f} events/s; {os.path.getsize(path) / EVENTS:,.0f} bytes of file for each event"
        )
    assert reading >= 40_000  # a guard against another order of growth; the rate itself is the machine's and its load's
