"""The hash chain over event rows, as replay/FORMAT.md §2 states it. Never reads a file, never re-encodes a payload."""

from __future__ import annotations

from hashlib import sha256

GENESIS = "0" * 64


def event_hash(
    seq: int, version: int, prev_hash: str, stream: str, type_: str, recorded_at: str, payload: bytes
) -> str:
    """Lower-case hex SHA-256 of the row's preimage; `payload` is the stored bytes, every other text printable ASCII.

    The preimage, with each text and the payload behind its length in bytes, so that no two rows share one:

        gpusolver-event-1 \\n seq \\n version \\n prev_hash \\n N:stream \\n N:type \\n N:recorded_at \\n N:payload

    A text that is not ASCII (a damaged row) is hashed by its UTF-8 bytes, undecodable ones included.
    """
    head = (
        f"gpusolver-event-1\n{seq}\n{version}\n{prev_hash}\n{len(stream)}:{stream}\n{len(type_)}:{type_}\n"
        f"{len(recorded_at)}:{recorded_at}\n{len(payload)}:"
    )
    if not head.isascii():
        head = _byte_counted(seq, version, prev_hash, stream, type_, recorded_at, payload)
    return sha256(head.encode("utf-8", "surrogateescape") + payload).hexdigest()


def _byte_counted(
    seq: int, version: int, prev_hash: str, stream: str, type_: str, recorded_at: str, payload: bytes
) -> str:
    counted = "".join(
        f"{len(text.encode('utf-8', 'surrogateescape'))}:{text}\n" for text in (stream, type_, recorded_at)
    )
    return f"gpusolver-event-1\n{seq}\n{version}\n{prev_hash}\n{counted}{len(payload)}:"
