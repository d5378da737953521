"""What checking a ledger costs: its rate beside raw sqlite3 and the `eventsourcing` library in one run, its memory, its growth.

Each measurement is a process of its own, so that memory is that of one. `pytest -m campaign -s` prints the figures.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpusolver

from .copies import copies

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1800)]
ROOT = Path(gpusolver.__file__).parent.parent
SIZES = (10_000, 100_000, 1_000_000)
ROOM = 16 << 30

_FRAME = """
import json, resource, sys, time
{prepare}
path = sys.argv[1]
began = time.process_time()
{work}
spent = time.process_time() - began
print(json.dumps({{"s": spent, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "n": n, **more}}))
"""
VERIFY = _FRAME.format(
    prepare="from gpusolver.replay.verify import verify",
    work="report = verify(path, deep=False)\nn, more = report.counts['events'], {'findings': len(report.findings)}",
)
# The portions that two processes would take, one after the other, each timed alone; `last` is what one process does besides.
PORTIONS = _FRAME.format(
    prepare="from gpusolver.events.reader import LedgerReader\n"
    "from gpusolver.replay.findings import Findings\n"
    "from gpusolver.replay.whole_file import check_artifacts\n"
    "from gpusolver.replay.parallel import boundaries, check",
    work="which = int(sys.argv[2])\n"
    "with LedgerReader(path, inspected=True) as reader:\n"
    "    begins = [*boundaries(reader, 2), reader.head()[0] + 1]\n"
    "    sound, _ = check_artifacts(reader.artifact_rows(), Findings())\n"
    "part = check(path, begins[which], begins[which + 1] - 1, sound, (), False, 20_000)\n"
    "n, more = begins[which + 1] - begins[which], {'whole': part is not None}",
)
SPREAD = _FRAME.format(
    prepare="from gpusolver.replay.verify import verify",
    work="report = verify(path, deep=False, jobs=2)\nn, more = report.counts['events'], {'findings': len(report.findings)}",
)
DEEP = _FRAME.format(
    prepare="from gpusolver.replay.verify import verify",
    work="report = verify(path, deep=True)\n"
    "n, more = report.counts['rounds'], {'kinds': sorted({f.kind for f in report.findings})}",
)
RAW = _FRAME.format(
    prepare="import sqlite3\nfrom hashlib import sha256",
    work="more, n = {}, 0\n"
    "for row in sqlite3.connect(path).execute('SELECT seq, stream, type, CAST(payload AS BLOB), hash FROM events'):\n"
    "    sha256(row[3]).hexdigest(); n += 1",
)
# The same events' contents in aggregates of 100, stored by its own SQLite recorder and replayed by its repository.
EVENTSOURCING = _FRAME.format(
    prepare="""
import sqlite3, tempfile
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
class Cell(Aggregate):
    @event("Recorded")
    def record(self, body: dict) -> None:
        self.last = body
rows = sqlite3.connect(sys.argv[1]).execute("SELECT payload FROM events LIMIT 20000")
bodies = [json.loads(payload) for (payload,) in rows]
folder = tempfile.TemporaryDirectory()
app = Application(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": folder.name + "/es.db"})
ids = []
for first in range(0, len(bodies), 99):
    cell = Cell()
    for body in bodies[first:first + 99]:
        cell.record(body=body)
    app.save(cell)
    ids.append(cell.id)
""",
    work="n, more = 0, {}\nfor id in ids:\n    n += app.repository.get(id).version",
)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("copies")
    return {size: copies(folder / f"{size}.db", size) for size in SIZES}


def measured(script: str, path: Path, times: int = 3, *words: str) -> dict[str, Any]:
    """The median run by its process's own time: other programs share the machine."""
    found: list[dict[str, Any]] = []
    for _ in range(times):
        command = [sys.executable, "-c", script, str(path), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return sorted(found, key=lambda run: run["s"])[times // 2]


def rate(run: dict[str, Any]) -> float:
    return float(run["n"] / run["s"])


def test_a_million_events_are_checked_in_seconds(ledgers: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Chain, tree head, decode, re-encode and folds, on one core: linear, and in memory that the report alone fills."""
    runs = {size: measured(VERIFY, path) for size, path in ledgers.items()}
    raw = measured(RAW, ledgers[SIZES[-1]])
    with capsys.disabled():
        for size, run in runs.items():
            print(f"\n{size:,} events: {rate(run):,.0f} events/s, {run['s']:.2f} s, {run['mb']:.0f} MB", end="")
        print(
            f"\nraw sqlite3, rows and SHA-256 of payloads alone: {rate(raw):,.0f} events/s, {rate(raw) / rate(runs[SIZES[-1]]):.1f}x"
        )
    assert {run["findings"] for run in runs.values()} == {0}
    assert rate(runs[SIZES[-1]]) >= 90_000
    assert runs[SIZES[-1]]["mb"] < 300
    # Flat: what grows is a line in the report for each run, and the list of rounds up to its limit.
    assert runs[SIZES[-1]]["mb"] - runs[SIZES[0]]["mb"] < 40
    # Linear: a tenth of the time less at a tenth of the events, and the start of the process is in none of them.
    assert runs[1_000_000]["s"] / runs[100_000]["s"] == pytest.approx(10, rel=0.3)


def test_ten_million_events(tmp_path: Path, ledgers: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Still linear; memory is the report's line for each of 29,070 runs. Once, in 8 GB of disk."""
    if shutil.disk_usage(tmp_path).free < ROOM:
        pytest.skip(f"less than {ROOM >> 30} GB of free disk")
    path = copies(tmp_path / "ten_million.db", 10_000_000)
    try:
        run, smaller = measured(VERIFY, path, 1), measured(VERIFY, ledgers[SIZES[-1]], 1)
    finally:
        path.unlink()
    with capsys.disabled():
        print(f"\n{run['n']:,} events: {rate(run):,.0f} events/s, {run['s']:.1f} s, {run['mb']:.0f} MB")
    assert run["findings"] == 0 and run["mb"] < 300
    assert run["s"] / smaller["s"] == pytest.approx(10, rel=0.3)


def test_two_processes(ledgers: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """At least 1.7 times one: the longer portion and what one process does besides, by their own times; others share the machine."""
    path = ledgers[SIZES[-1]]
    one, halves = measured(VERIFY, path), [measured(PORTIONS, path, 3, str(which)) for which in (0, 1)]
    both = measured(SPREAD, path)
    critical = both["s"] + max(half["s"] for half in halves)
    with capsys.disabled():
        print(
            f"\ntwo processes: {one['s'] / critical:.2f} times one ({one['n'] / critical:,.0f} events/s): portions of "
            f"{halves[0]['s']:.2f} and {halves[1]['s']:.2f} s beside {both['s']:.2f} s in the first process; one process takes {one['s']:.2f} s"
        )
    assert all(half["whole"] for half in halves) and both["findings"] == 0
    assert one["s"] / critical >= 1.7


def test_rounds_derived_again_from_their_artifacts(
    ledgers: dict[int, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--verify`: every round's signals, match, gate, verdict and evolution; the runs are copies, so that is what it finds."""
    run = measured(DEEP, ledgers[100_000])
    with capsys.disabled():
        print(f"\n--verify: {rate(run):,.0f} rounds/s, {100_000 / run['s']:,.0f} events/s, {run['mb']:.0f} MB")
    assert run["kinds"] == ["samples"]


def test_beside_the_eventsourcing_library(ledgers: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """At least twice its replay of aggregates from SQLite, turn by turn in one run; it hashes nothing and proves no spelling."""
    pytest.importorskip("eventsourcing")
    pairs = [(measured(VERIFY, ledgers[100_000], 1), measured(EVENTSOURCING, ledgers[100_000], 1)) for _ in range(3)]
    ratio = statistics.median(rate(ours) / rate(theirs) for ours, theirs in pairs)
    with capsys.disabled():
        print(
            f"\neventsourcing: {statistics.median(rate(t) for _, t in pairs):,.0f} events/s; ours is {ratio:.1f} times that"
        )
    assert ratio >= 2
