"""Artifacts as stored: known digests, compression that never loses, inflation that never exceeds what was stated."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events import BadInput, UnreadableLedger, artifacts


def test_digests_of_the_standard() -> None:
    # FIPS 180-2, appendix B.1, and the empty message
    assert artifacts.digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert artifacts.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.binary(max_size=2000))
def test_what_is_packed_comes_back(content: bytes) -> None:
    codec, stored = artifacts.pack(content)
    assert len(stored) <= len(content)
    assert artifacts.unpack(codec, stored, len(content)) == content


def test_only_what_shrinks_is_compressed() -> None:
    assert artifacts.pack(b"") == ("raw", b"")
    assert artifacts.pack(b"abc") == ("raw", b"abc")
    codec, stored = artifacts.pack(b"a" * 1000)
    assert codec == "zlib"
    assert zlib.decompress(stored) == b"a" * 1000


def test_a_bomb_is_not_inflated() -> None:
    bomb = zlib.compress(b"\0" * (64 << 20), 9)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableLedger, match="expected 1000 bytes as stated, found more"):
            artifacts.unpack("zlib", bomb, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("codec", "stored", "size", "words"),
    [
        ("raw", b"abc", 4, "expected 4 bytes as stated, found 3"),
        ("zlib", zlib.compress(b"abc"), 4, "expected 4 bytes as stated, found 3"),
        ("zlib", zlib.compress(b"abc"), 2, "expected 2 bytes as stated, found more"),
        ("zlib", zlib.compress(b"abc")[:-1], 3, "cut off"),
        ("zlib", zlib.compress(b"abc") + b"x", 3, "followed by other bytes"),
        ("zlib", b"abc", 3, "no zlib stream"),
        ("zstd", b"abc", 3, "codec 'zstd'"),
        ("raw", b"", -1, "stated size -1"),
        ("zlib", b"", 1 << 62, "stated size"),
    ],
)
def test_lying_rows_are_refused(codec: str, stored: bytes, size: int, words: str) -> None:
    with pytest.raises(UnreadableLedger, match=words):
        artifacts.unpack(codec, stored, size)


def test_what_could_not_be_read_again_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "LARGEST", 10)
    with pytest.raises(BadInput, match=r"artifact of 11 bytes .* expected at most 10"):
        artifacts.pack(b"a" * 11)
