"""Content-addressed artifacts as stored: digest, compression and its bounded inverse. Never touches a database."""

from __future__ import annotations

import zlib
from hashlib import sha256
from typing import Literal, NamedTuple

from .errors import BadInput, UnreadableLedger

Codec = Literal["zlib", "raw"]

LARGEST = 1 << 28
"""Bytes: a larger artifact is neither stored nor inflated (a whole profiler report is a few MB)."""


class Artifact(NamedTuple):
    """Bytes to be stored once under their digest; the media type of the first to store them is kept."""

    content: bytes
    media_type: str


def digest(content: bytes) -> str:
    """Lower-case hex SHA-256 of the uncompressed bytes: the artifact's name in events."""
    return sha256(content).hexdigest()


def pack(content: bytes) -> tuple[Codec, bytes]:
    """(codec, stored bytes): zlib level 6, or the bytes themselves where that is not smaller."""
    if len(content) > LARGEST:
        raise BadInput(
            f"artifact of {len(content)} bytes (digest {digest(content)}): expected at most {LARGEST}; store an excerpt"
        )
    packed = zlib.compress(content, 6)
    return ("zlib", packed) if len(packed) < len(content) else ("raw", content)


def unpack(codec: str, content: bytes, size: int) -> bytes:
    """The uncompressed bytes, exactly `size` of them; never inflates beyond that, whatever the stored bytes say."""
    if not 0 <= size <= LARGEST:
        raise UnreadableLedger(f"artifact: stated size {size}, expected 0 to {LARGEST} bytes")
    if codec == "raw":
        plain = content
    elif codec == "zlib":
        plain = _inflate(content, size)
    else:
        raise UnreadableLedger(f"artifact: codec {codec!r}, expected 'zlib' or 'raw'")
    if len(plain) != size:
        raise UnreadableLedger(f"artifact: expected {size} bytes as stated, found {len(plain)} ({codec})")
    return plain


def _inflate(content: bytes, size: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(content, size + 1)  # one byte more than stated is enough to know that it lies
    except zlib.error as error:
        raise UnreadableLedger(f"artifact: stored bytes are no zlib stream ({error})") from error
    if len(plain) > size:
        raise UnreadableLedger(f"artifact: expected {size} bytes as stated, found more (zlib)")
    if not inflater.eof or inflater.unused_data:
        raise UnreadableLedger("artifact: the zlib stream is cut off or followed by other bytes")
    return plain
