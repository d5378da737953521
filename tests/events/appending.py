"""Appends to a ledger until it is killed: `python -m tests.events.appending LEDGER ACKNOWLEDGED SEED`.

What `append` returned is listed in ACKNOWLEDGED, one line `seq round` an event, before the next append. Transactions are of 1 to 8
events, some with an artifact; every so often the ledger is closed and opened again, so that a kill may meet any of that.
"""

from __future__ import annotations

import os
import random
import sys

from gpusolver.events.model import Cell, RoundAttempted, cell_stream
from gpusolver.events.writer import LedgerWriter

CELL = Cell(problem="matmul", contract="fp32-strict", pool="seed", arm="on", repetition=1)
STREAM = cell_stream("run1", CELL)


def content(version: int) -> bytes:
    """The artifact of the transaction that begins after `version` events; none of every other."""
    return b"artifact of %d" % version * 40


def event(number: int) -> RoundAttempted:
    """Event `number` of the stream, from 0."""
    return RoundAttempted(cell=CELL, round=number, attempt=1, incumbent=f"{number:064x}")


def append_once(ledger: LedgerWriter, version: int, chance: random.Random) -> tuple[int, bytes]:
    """One transaction; the stream's version after it, and the lines that acknowledge it."""
    events = [event(number) for number in range(version, version + chance.randint(1, 8))]
    artifacts = [(content(version), "text/plain")] if version % 2 else []
    seqs = ledger.append(STREAM, version, events, artifacts)
    lines = b"".join(b"%d %d\n" % (seq, each.round) for seq, each in zip(seqs, events, strict=True))
    return version + len(events), lines


def main(path: str, acknowledged: str, seed: int) -> None:
    """Until the end."""
    listed = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    chance = random.Random(seed)
    while True:
        with LedgerWriter(path) as ledger:
            version = ledger.version(STREAM)
            for _ in range(chance.choice((1, 3, 30, 300))):
                version, lines = append_once(ledger, version, chance)
                os.write(listed, lines)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
