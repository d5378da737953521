"""The hash chain against the vectors of replay/FORMAT.md and against the preimage spelt out."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import gpusolver
from gpusolver.events import GENESIS, event_hash

PAYLOAD = b'{"type":"RunStopped","run":"run1","cell":null,"reason":"done","rule":null,"rev":1}'
ONE = "e94d9f97b25d9f83d73a45c1e850a0d16eb78c29bd13a47607881e98f92d4c0d"
TWO = "129aa7d34b6ee6195c46a6f9c91808bfa6821ca4f46ba0c65b4d0b527cd4178d"


def test_the_vectors_of_the_format_page() -> None:
    one = event_hash(1, 1, GENESIS, "run1", "RunStopped", "2026-01-01T00:00:00.000Z", PAYLOAD)
    two = event_hash(2, 2, one, "run1", "RunStopped", "2026-01-01T00:00:01.000Z", PAYLOAD)
    assert (one, two) == (ONE, TWO)


def test_the_vectors_stand_on_the_format_page() -> None:
    page = (Path(gpusolver.__file__).parent.parent / "replay" / "FORMAT.md").read_text(encoding="utf-8")
    assert re.findall(r"hash `([0-9a-f]{64})`", page) == [ONE, TWO]


def test_the_preimage_spelt_out() -> None:
    preimage = b"gpusolver-event-1\n7\n3\n" + b"f" * 64 + b"\n2:ab\n1:T\n3:now\n4:\xff\n{}"
    assert event_hash(7, 3, "f" * 64, "ab", "T", "now", b"\xff\n{}") == hashlib.sha256(preimage).hexdigest()


def test_texts_that_are_not_ascii_are_counted_and_hashed_by_their_bytes() -> None:
    preimage = b"gpusolver-event-1\n1\n1\n" + b"0" * 64 + b"\n2:\xc3\xa9\n1:\xff\n1:t\n0:"
    stream, type_ = b"\xc3\xa9".decode(), b"\xff".decode("utf-8", "surrogateescape")
    assert event_hash(1, 1, GENESIS, stream, type_, "t", b"") == hashlib.sha256(preimage).hexdigest()


TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
COLUMNS = st.tuples(st.integers(1, 9), st.integers(1, 9), TEXT, TEXT, TEXT, TEXT, st.binary(max_size=8))


@given(COLUMNS, COLUMNS)
def test_different_rows_have_different_hashes(
    one: tuple[int, int, str, str, str, str, bytes], other: tuple[int, int, str, str, str, str, bytes]
) -> None:
    assert (event_hash(*one) == event_hash(*other)) == (one == other)


def test_moving_a_character_between_columns_changes_the_hash() -> None:
    assert event_hash(1, 1, GENESIS, "ab", "c", "t", b"") != event_hash(1, 1, GENESIS, "a", "bc", "t", b"")
    assert event_hash(1, 1, GENESIS, "a", "b", "t1", b"") != event_hash(1, 1, GENESIS, "a", "b", "t", b"1")
