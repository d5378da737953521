"""kill -9 at random moments under append load: whatever `append` acknowledged is there afterwards, and every ledger can be read.

A kill shows that nothing waits in the process; that power loss takes nothing either rests on WAL with synchronous = FULL, which
test_writer.py reads back, and is argued, not shown.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import gpusolver
from gpusolver.events import digest
from gpusolver.events.model import RoundAttempted
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay.findings import Findings
from gpusolver.replay.integrity import scan
from gpusolver.replay.whole_file import check_artifacts, check_schema

from .appending import STREAM, content, event

ROOT = Path(gpusolver.__file__).parent.parent
LIVES = 25
"""Kills that one ledger goes through."""
STARTS = 2.5
"""A life's length is random up to so many times that of a start: it ends while Python starts, while the ledger is made, opened, written."""


def one_life(ledger: Path, acknowledged: Path, seed: int, seconds: float) -> None:
    """Start a writer and kill it; one that ended by itself is a failure."""
    command = [sys.executable, "-m", "tests.events.appending", str(ledger), str(acknowledged), str(seed)]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    _, said = child.communicate()
    assert child.returncode == -signal.SIGKILL, said.decode()[-1000:]


def start_s(folder: Path) -> float:
    """How long it takes here, now, from nothing to the first acknowledged event: machines, and their moments, differ."""
    folder.mkdir()
    ledger, acknowledged = folder / "ledger.db", folder / "acknowledged"
    command = [sys.executable, "-m", "tests.events.appending", str(ledger), str(acknowledged), "0"]
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT) as child:
        while not (acknowledged.exists() and acknowledged.stat().st_size):
            time.sleep(0.005)
        child.kill()
    return time.monotonic() - begun


def listed(acknowledged: Path) -> list[tuple[int, int]]:
    """(seq, round) of every acknowledged event; a last line that the kill cut short is none."""
    whole = acknowledged.read_bytes().rpartition(b"\n")[0] if acknowledged.exists() else b""
    return [(int(seq), int(round_)) for seq, _, round_ in (line.partition(b" ") for line in whole.splitlines())]


def head_after_kill(ledger: Path, tally: Counter[str]) -> int:
    """The last seq as a reader finds it right after the kill, before any writer has put the file in order."""
    with LedgerReader(ledger) as reader:
        tally["read after it"] += 1
        tally["of these from a copy with a journal undone"] += any("-journal" in notice for notice in reader.notices)
        return reader.head()[0]


def lives_of_one_ledger(folder: Path, seed: int, kills: int, tally: Counter[str]) -> None:
    """Kill a ledger's writers again and again; look after each kill, and at everything after the last."""
    longest_s = STARTS * start_s(folder.with_name(f"{folder.name}-start"))
    folder.mkdir()
    ledger, acknowledged, chance = folder / "ledger.db", folder / "acknowledged", random.Random(seed)
    for kill in range(kills):
        one_life(ledger, acknowledged, kill, chance.uniform(0, longest_s))
        tally["kills"] += 1
        known = listed(acknowledged)
        if known:
            found = head_after_kill(ledger, tally)
            assert found >= known[-1][0], f"seed {seed}, kill {kill}: lost {known[-1][0] - found} acknowledged events"
    whole(ledger, listed(acknowledged), kills, tally)


def whole(ledger: Path, known: list[tuple[int, int]], kills: int, tally: Counter[str]) -> None:
    """Chain, schema, artifacts and indexes are sound; every acknowledged event is there, and little else."""
    with LedgerWriter(ledger) as writer:  # the next life, which closes
        count = writer.version(STREAM)
    assert {path.name for path in ledger.parent.iterdir()} <= {"acknowledged", "ledger.db"}
    findings = Findings()
    with LedgerReader(ledger) as reader:
        check_schema(((o[0], o[1], o[2]) for o in reader.schema_objects()), findings)
        scanned = scan(reader.rows(), findings)
        sound, _ = check_artifacts(reader.artifact_rows(), findings)
    assert findings.all == []
    stored = [(seq, item.round) for seq, item in scanned.streams.get(STREAM, []) if isinstance(item, RoundAttempted)]
    assert stored == [(number + 1, number) for number in range(count)]
    assert set(known) <= set(stored)
    # Of each life at most one transaction, of 8 events at most, was committed and not yet acknowledged.
    assert len(stored) - len(known) <= 8 * kills
    assert all(item == event(seq - 1) for seq, item in scanned.streams.get(STREAM, []))
    assert set(sound) <= {digest(content(version)) for version in range(1, count, 2)}
    with closing(sqlite3.connect(ledger)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    tally["acknowledged"] += len(known)
    tally["stored"] += count


@pytest.mark.filterwarnings("ignore:.*was not closed by its writer")
def test_nothing_acknowledged_is_lost_in_25_kills(tmp_path: Path) -> None:
    tally = Counter[str]()
    lives_of_one_ledger(tmp_path / "0", 0, LIVES, tally)
    assert tally["kills"] == LIVES <= tally["acknowledged"]


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore:.*was not closed by its writer")
@pytest.mark.timeout(1800)
def test_nothing_acknowledged_is_lost_in_1000_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Counter[str]()
    for seed in range(1000 // LIVES):
        lives_of_one_ledger(tmp_path / str(seed), seed, LIVES, tally)
    with capsys.disabled():
        print("\n" + ", ".join(f"{name} {number:,}" for name, number in tally.items()) + "; 0 lost, 0 unreadable")
    assert tally["kills"] == 1000 and tally["acknowledged"] > 50_000


def test_a_killed_writer_leaves_no_lock_behind(tmp_path: Path) -> None:
    """The file of the lock stays, the lock does not."""
    ledger, acknowledged = tmp_path / "ledger.db", tmp_path / "acknowledged"
    seconds = 0.3
    while not (tmp_path / "ledger.db.lock").exists():
        one_life(ledger, acknowledged, 0, seconds)
        seconds *= 1.5
    with LedgerWriter(ledger) as writer:
        assert writer.head()[0] >= len(listed(acknowledged)) > 0
    assert sorted(os.listdir(tmp_path)) == ["acknowledged", "ledger.db"]
