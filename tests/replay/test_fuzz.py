"""Random damage: a verifier names it or says that the file is unreadable, and never falls over."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusolver.events.errors import UnreadableLedger
from gpusolver.replay.verify import verify

from .exam_forge import forge_examination
from .forge import forge
from .tamper import event_hash, unguarded

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module", params=["run", "examination"])
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cell of five rounds, or one examination."""
    path = tmp_path_factory.mktemp("small") / "ledger.db"
    if request.param == "examination":
        return forge_examination(path)
    return forge(path, arms=("on",), repetitions=1, max_rounds=5, looks=(4, 8), second=True)


@contextmanager
def copy_of(path: Path) -> Iterator[Path]:
    """A copy that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy(path, Path(folder) / "ledger.db"))


def payloads(path: Path) -> list[bytes]:
    """Stored payload bytes by seq."""
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT CAST(payload AS BLOB) FROM events ORDER BY seq")]


def store(path: Path, seq: int, payload: bytes, *, rechain: bool) -> None:
    """Put other bytes into an event; with `rechain` every hash from there on is made to fit."""
    with unguarded(path) as db:
        db.text_factory = bytes
        db.execute("UPDATE events SET payload = CAST(? AS TEXT) WHERE seq = ?", (payload, seq))
        if not rechain:
            return
        previous = "0" * 64
        query = "SELECT seq, version, stream, type, recorded_at, CAST(payload AS BLOB) FROM events ORDER BY seq"
        for number, version, stream, kind, at, stored in db.execute(query).fetchall():
            texts = (stream.decode(), kind.decode(), at.decode())
            found = event_hash(number, version, previous, *texts, stored)
            db.execute("UPDATE events SET prev_hash = ?, hash = ? WHERE seq = ?", (previous, found, number))
            previous = found


@settings(max_examples=80, deadline=None, suppress_health_check=QUIET)
@given(where=st.integers(0, 10**9), byte=st.integers(0, 255), rechain=st.booleans())
def test_any_byte_of_any_payload(small: Path, where: int, byte: int, rechain: bool) -> None:
    """One byte: named by seq where the chain was left alone, never a traceback where it was rebuilt."""
    stored = payloads(small)
    seq = where % len(stored) + 1
    at = where // len(stored) % len(stored[seq - 1])
    changed = bytearray(stored[seq - 1])
    changed[at] = byte
    if bytes(changed) == stored[seq - 1]:
        return
    with copy_of(small) as path:
        store(path, seq, bytes(changed), rechain=rechain)
        report = verify(path, deep=True)
    assert rechain or (seq, "hash") in {(f.seq, f.kind) for f in report.findings}


NAMED = (
    rb'"(?:samples|report|launches|counters|calibration|timeline|warm|compiled|energy|kernels|ours|theirs)"'
    rb':"([0-9a-f]{64})"'
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(content=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()), which=st.integers(0, 10**6))
def test_any_artifact_in_place_of_another(small: Path, content: bytes, which: int) -> None:
    """Hostile artifacts under their own digest, named by a re-chained event: findings, no traceback."""
    stored = payloads(small)
    names = [(i, m) for i, payload in enumerate(stored) for m in re.finditer(NAMED, payload)]
    index, found = names[which % len(names)]
    digest = hashlib.sha256(content).hexdigest()
    changed = stored[index][: found.start(1)] + digest.encode() + stored[index][found.end(1) :]
    with copy_of(small) as path:
        with closing(sqlite3.connect(path)) as db, db:
            if not db.execute("SELECT 1 FROM artifacts WHERE digest = ?", (digest,)).fetchone():
                db.execute("INSERT INTO artifacts VALUES (?, 'x/y', ?, 'raw', ?)", (digest, len(content), content))
        store(path, index + 1, changed, rechain=True)
        report = verify(path, deep=True)
    assert index + 1 in {f.seq for f in report.findings}


@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(where=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_any_bit_of_the_file(small: Path, where: int, bit: int) -> None:
    """The file as a whole: a report, or words why it cannot be read."""
    with copy_of(small) as path:
        raw = bytearray(path.read_bytes())
        raw[where % len(raw)] ^= 1 << bit
        path.write_bytes(raw)
        try:
            report = verify(path, deep=True)
        except UnreadableLedger as error:
            assert str(path) in str(error)
        else:
            assert report.counts["events"] > 0


def test_a_schema_text_that_is_no_utf8_is_told_in_words(small: Path) -> None:
    """Found by the fuzz above: a flipped bit in the stored CREATE TABLE made the reader, or SQLite's own message, raise."""
    with copy_of(small) as path:
        raw = path.read_bytes()
        begin = raw.index(b"CREATE TABLE events(")
        for where in range(begin, begin + 400):
            path.write_bytes(raw[:where] + bytes([raw[where] ^ 0x80]) + raw[where + 1 :])
            try:
                kinds = {finding.kind for finding in verify(path, deep=True).findings}
            except UnreadableLedger as error:
                assert str(path) in str(error)
            else:
                assert "schema object" in kinds
