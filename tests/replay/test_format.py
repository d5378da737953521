"""The page against hashlib, the writing side's chain and the verifier: vectors read out of FORMAT.md itself."""

from __future__ import annotations

import re
from importlib.resources import files
from math import comb
from pathlib import Path

import pytest

from gpusolver.events import chain
from gpusolver.events.model import EVENT_TYPES
from gpusolver.events.rows import Row
from gpusolver.replay.derive_counted import STALLS
from gpusolver.replay.derive_signals import TENSOR_ACTIVE
from gpusolver.replay.evolution import ARMS
from gpusolver.replay.extras import SHAPES
from gpusolver.replay.finals import PAIRS
from gpusolver.replay.findings import Findings
from gpusolver.replay.integrity import scan

from . import exam_world
from .tamper import event_hash, lines

PAGE = files("gpusolver.replay").joinpath("FORMAT.md").read_text("utf-8")
PAYLOAD = re.search(r"`payload`\n`(\{.*?\})`", PAGE)
HASHES = re.findall(r"hash `([0-9a-f]{64})`", PAGE)
TIMES = re.findall(r"`recorded_at` `([^`]+)`", PAGE)
STREAM, TYPE = "run1", "RunStopped"


def vectors() -> list[Row]:
    """The two vectors as rows, their hashes as printed."""
    assert PAYLOAD is not None and len(HASHES) == 2 and len(TIMES) == 2
    payload = PAYLOAD.group(1).encode()
    one = Row(1, STREAM, 1, TYPE, TIMES[0], payload, "0" * 64, HASHES[0])
    return [one, Row(2, STREAM, 2, TYPE, TIMES[1], payload, HASHES[0], HASHES[1])]


@pytest.mark.parametrize("row", vectors())
def test_vectors_hold_by_hashlib_alone(row: Row) -> None:
    """The printed hashes are those of the preimage as the page draws it."""
    found = event_hash(row.seq, row.version, row.prev_hash, row.stream, row.type, row.recorded_at, row.payload)
    assert found == row.hash


@pytest.mark.parametrize("row", vectors())
def test_vectors_hold_for_the_writing_side(row: Row) -> None:
    """events/chain.py hashes what the page says."""
    args = (row.seq, row.version, row.prev_hash, row.stream, row.type, row.recorded_at, row.payload)
    assert chain.event_hash(*args) == row.hash


def test_vectors_hold_for_the_verifier() -> None:
    """The verifier accepts both vectors, and neither with another time."""
    findings = Findings()
    assert scan(vectors(), findings).head == HASHES[1]
    assert findings.all == []
    scan([vectors()[0]._replace(recorded_at="2026-01-01T00:00:00.001Z")], findings)
    assert [finding.kind for finding in findings.all] == ["hash"]


def test_the_preimage_counts_bytes_in_the_order_drawn() -> None:
    """The block on the page names the same lines as the code that the vectors hold for."""
    block = PAGE.split("```\n")[1]
    assert block.splitlines() == [
        "gpusolver-event-1",
        "<seq>",
        "<version>",
        "<prev_hash>",
        "<N>:<stream>",
        "<N>:<type>",
        "<N>:<recorded_at>",
        "<N>:<payload>",
    ]


def test_the_page_and_the_verifier_name_the_same_things() -> None:
    """Event types, tensor metrics, arms and comparisons of the code are on the page."""
    for name in set(EVENT_TYPES) | set(TENSOR_ACTIVE) | set(PAIRS):
        assert name in PAGE
    assert {arm.removesuffix("+tabu") for arm in ARMS} == {"on", "off", "random"}


def test_the_page_names_every_signal_and_role() -> None:
    """What exam_world.py works out by hand stands in the tables, a stall by its kind; a role is a heading of section 5."""
    tables = PAGE.split("### 6.3")[1].split("### 6.4")[0]
    for name in exam_world.SIGNALS:
        known = name.removeprefix("stall_") if name not in ("stall_max",) else name
        assert re.search(rf"[` ]{known}[` ]", tables), name
    assert set(STALLS) == set(re.search(r"Kinds of stalls: `([^`]+)`", PAGE).group(1).split())  # type: ignore[union-attr]
    for role in SHAPES:
        assert f"- **{role}** (in `extras`)" in PAGE


def test_four_straight_failures_retire_by_the_formula_of_the_page() -> None:
    """sum of C(n, k) for k > s, n = s + f + 1, against 19/20 of 2^n: 31 of 32 at four failures, 15 of 16 at three."""
    reached = [sum(comb(f + 1, k) for k in range(1, f + 2)) * 20 >= 19 * 2 ** (f + 1) for f in range(1, 5)]
    assert reached == [False, False, False, True]


def test_a_forged_ledger_hashes_by_the_page(clean: Path) -> None:
    """The writing side's stored hashes are those of the words on the page."""
    previous, versions = "0" * 64, dict[str, int]()
    for line in lines(clean):
        versions[line.stream] = versions.get(line.stream, 0) + 1
        payload = line.payload().encode()
        previous = event_hash(line.seq, versions[line.stream], previous, line.stream, line.kind, line.at, payload)
    assert previous == head_of(clean)


def head_of(path: Path) -> str:
    """The stored hash of the last event."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()[0])
