"""How fast a ledger is replayed on one core beside a raw read of the same rows: a ratio, for rates are the machine's."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gpusolver.events.reader import LedgerReader
from gpusolver.replay.findings import Findings
from gpusolver.replay.grammar import parse
from gpusolver.replay.integrity import scan, without_collector
from gpusolver.replay.runs import sort_out
from gpusolver.replay.verify import verify
from gpusolver.replay.views import fold_cell

from .forge import forge
from .tamper import Line, rewrite

pytestmark = pytest.mark.bench
RUNS = 12


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 40,000 events: one forged run under several run ids."""
    path = forge(tmp_path_factory.mktemp("large") / "ledger.db", arms=("off", "on"), repetitions=30)

    def repeat(events: list[Line]) -> list[Line]:
        return [renamed(event, f"run{i}") for i in range(1, RUNS + 1) for event in events]

    return rewrite(path, repeat)


def renamed(event: Line, run: str) -> Line:
    """The event in another run."""
    payload = event.payload().replace('"run1', f'"{run}')
    return Line(0, event.stream.replace("run1", run, 1), event.kind, event.at, payload)


def rate(work: Callable[[], object], events: int) -> float:
    """Events per second of this process's own time (other programs share the machine), best of three."""
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return events / min(times)


def test_replay_against_a_raw_read(large: Path) -> None:
    """Read, chain, decode and fold stay within ten times the cost of reading and hashing the same rows."""

    def raw() -> None:
        with closing(sqlite3.connect(large)) as db:
            for row in db.execute(
                "SELECT seq, stream, version, type, recorded_at, payload, prev_hash, hash FROM events"
            ):
                hashlib.sha256(row[5].encode()).hexdigest()

    @without_collector()
    def folded() -> None:
        findings = Findings()
        with LedgerReader(large) as reader:
            scanned = scan(reader.rows(), findings, spelling=False)
        for run in sort_out(scanned, findings):
            for stream, items in run.cells.items():
                fold_cell(stream, parse(items, findings), run.table())
        assert findings.all == []

    with LedgerReader(large) as reader:
        events = reader.head()[0]
    raw_rate, fold_rate = rate(raw, events), rate(folded, events)
    whole, deep = rate(lambda: verify(large, False), events), rate(lambda: verify(large, True), events)
    print(
        f"\n{events} events: raw {raw_rate:,.0f}/s, folded {fold_rate:,.0f}/s, replay {whole:,.0f}/s, --verify {deep:,.0f}/s"
    )
    assert {finding.kind for finding in verify(large, True).findings} == {"samples"}  # the runs are copies of one
    assert raw_rate / fold_rate < 10
