"""A ledger of any number of events: one forged run under run1, run2, ..., chained by the page's own words. No number in it was measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from tests.replay.forge import forge
from tests.replay.tamper import Line, event_hash, lines, unguarded

Row = tuple[int, str, int, str, str, str, str, str]


def copies(path: Path, events: int) -> Path:
    """At least that many events of about 490 bytes of payload, in whole runs."""
    forge(path, arms=("off", "on"), repetitions=3)
    one_run = lines(path)
    whole = -(-events // len(one_run)) * len(one_run)
    with unguarded(path) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        db.execute("DELETE FROM events")
        db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", islice(_rows(one_run), whole))
        db.execute("COMMIT")
    return path


def _rows(one_run: list[Line]) -> Iterator[Row]:
    """Without an end."""
    previous, texts = "0" * 64, [line.payload() for line in one_run]
    numbers = count(1)
    for run in count(1):
        versions: dict[str, int] = {}
        for line, text in zip(one_run, texts, strict=True):
            seq, stream = next(numbers), line.stream.replace("run1", f"run{run}", 1)
            payload = text.replace('"run1', f'"run{run}')
            version = versions[stream] = versions.get(stream, 0) + 1
            stored = event_hash(seq, version, previous, stream, line.kind, line.at, payload.encode())
            yield seq, stream, version, line.kind, line.at, payload, previous, stored
            previous = stored
