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
from gpusolver.events.schema import SQL
from gpusolver.events.writer import LedgerWriter
from tests.events.examples import CELL, STREAM

pytestmark = pytest.mark.bench

APPENDS = 25
TURNS = 80
EVENTS = 60_000
BATCH, BATCHES = 1000, 40


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


_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class RawSqlite:
    """The least that a durable log of events in sqlite3 can be: the same columns and pragmas, each event encoded once.

    No hash, no guard, no index, no proof that what was encoded can be read again. `laid_out`: in the ledger's own table, with its
    index and its rules for cells, but without triggers.
    """

    def __init__(self, path: Path, *, laid_out: bool = False) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        if laid_out:
            self.connection.executescript(SQL.partition("CREATE TRIGGER")[0])
            self.encoder = msgspec.json.Encoder()
            return
        columns = "stream TEXT, version INTEGER, type TEXT, recorded_at TEXT, payload TEXT, prev_hash TEXT, hash TEXT"
        self.connection.execute(f"CREATE TABLE events(seq INTEGER PRIMARY KEY, {columns})")
        self.encoder = msgspec.json.Encoder()

    def append(self, seq: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(_INSERT, self.row(seq, event(seq)))
        self.connection.execute("COMMIT")

    def append_all(self, first: int, events: list[NoiseFloorMeasured]) -> None:
        """One transaction, by executemany."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(_INSERT, (self.row(seq, each) for seq, each in enumerate(events, first)))
        self.connection.execute("COMMIT")

    def row(self, seq: int, recorded: NoiseFloorMeasured) -> tuple[object, ...]:
        payload = self.encoder.encode(recorded).decode()
        return seq, STREAM, seq, "NoiseFloorMeasured", "2026-01-01T00:00:00.000Z", payload, GENESIS, GENESIS


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
    assert ratio >= 0.6  # a guard: how long a disk takes is its own; the figure is printed


def batch_ratio(folder: Path, *, laid_out: bool) -> tuple[float, float, float]:
    """(median of ratios, our events/s, raw events/s) in batches of 1,000, turn by turn; making the events is in neither."""
    folder.mkdir()
    raw = RawSqlite(folder / "raw.db", laid_out=laid_out)
    ours, theirs = [], []
    with LedgerWriter(folder / "ledger.db") as ledger:
        for first in range(0, BATCHES * BATCH, BATCH):
            events = [event(index) for index in range(first, first + BATCH)]
            begun = time.perf_counter()
            raw.append_all(first + 1, events)
            between = time.perf_counter()
            ledger.append(STREAM, first, events)
            ours.append(time.perf_counter() - between)
            theirs.append(between - begun)
    raw.connection.close()
    ratio = statistics.median(their / our for our, their in zip(ours, theirs, strict=True))
    return ratio, BATCH / statistics.median(ours), BATCH / statistics.median(theirs)


@pytest.mark.parametrize(("where", "least"), [("the ledger's own table", 0.35), ("a bare table", 0.15)])
def test_batches_against_raw_sqlite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, least: float
) -> None:
    """Proof of the spelling, chain and guard beside the same rows in the same table with its index and rules; then beside the least."""
    runs = sorted(batch_ratio(tmp_path / str(run), laid_out=where != "a bare table") for run in range(5))
    ratio, ours, theirs = runs[2]
    with capsys.disabled():
        print(
            f"\nbatches of {BATCH:,}: {ours:,.0f} events/s, raw sqlite3 into {where} {theirs:,.0f}/s, median ratio {ratio:.3f} in the "
            f"median of five runs ({', '.join(f'{run[0]:.3f}' for run in runs)})"
        )
    assert ratio >= least


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
