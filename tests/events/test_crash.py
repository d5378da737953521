"""kill -9 under load: whatever append acknowledged is there afterwards, whole transactions only, and the chain holds."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import gpusolver
from gpusolver.events import GENESIS, digest, event_hash
from gpusolver.events.model import RoundAttempted
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import STREAM

ROOT = Path(gpusolver.__file__).parent.parent
KILLS = 20

APPENDING = """
import os, sys
from gpusolver.events.writer import LedgerWriter
from tests.events.examples import STREAM, attempt

acknowledged = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
with LedgerWriter(sys.argv[1]) as ledger:
    version = ledger.version(STREAM)
    while True:
        three = [attempt(round_) for round_ in range(version, version + 3)]
        seqs = ledger.append(STREAM, version, three, [(b"artifact of %d" % version, "text/plain")])
        os.write(acknowledged, b"".join(b"%d %d\\n" % (seq, event.round) for seq, event in zip(seqs, three)))
        version += 3
"""


def append_until_killed(ledger: Path, acknowledged: Path, seconds: float) -> None:
    """Kill a writer `seconds` after its first acknowledgement of this life."""
    before = acknowledged.stat().st_size if acknowledged.exists() else 0
    child = subprocess.Popen([sys.executable, "-c", APPENDING, ledger, acknowledged], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not acknowledged.exists() or acknowledged.stat().st_size == before:
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "ledger.db", tmp_path / "acknowledged"
    for kill in range(KILLS):
        append_until_killed(path, acknowledged, 0.001 + 0.0037 * kill)
    with LedgerWriter(path) as ledger:  # a resumed writer takes over and closes properly
        assert ledger.version(STREAM) % 3 == 0
    assert sorted(os.listdir(tmp_path)) == ["acknowledged", "ledger.db"]

    expected = [tuple(map(int, line.split())) for line in acknowledged.read_text().splitlines()]
    with LedgerReader(path) as reader:
        stored = [(item.seq, item.event.round) for item in reader.recorded() if isinstance(item.event, RoundAttempted)]
        rows = list(reader.rows())
        artifacts = [reader.artifact(digest(b"artifact of %d" % version)) for version in range(0, len(rows), 3)]
    assert len(expected) >= 3 * KILLS
    assert set(expected) <= set(stored)
    # At most one transaction of each life was committed and killed before it could be acknowledged.
    assert len(stored) - len(expected) <= 3 * KILLS
    assert stored == [(seq, seq - 1) for seq in range(1, len(rows) + 1)]
    assert len(artifacts) == len(rows) / 3
    assert_chained(path)


def assert_chained(path: Path) -> None:
    previous = GENESIS
    with LedgerReader(path) as reader:
        for row in reader.rows():
            assert row.prev_hash == previous
            previous = event_hash(row.seq, row.version, previous, row.stream, row.type, row.recorded_at, row.payload)
            assert row.hash == previous
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_killed_writer_leaves_no_lock_behind(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "ledger.db", tmp_path / "acknowledged"
    append_until_killed(path, acknowledged, 0)
    assert (tmp_path / "ledger.db.lock").exists()
    with LedgerWriter(path) as ledger:
        assert ledger.head()[0] >= 3
