"""File, chain and artifact checks of FORMAT.md sections 1 to 3, decoding each event once. Never trusts a stored hash."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable
from hashlib import sha256
from importlib.resources import files
from typing import Any

import msgspec

from ..events.codec import decode as decode_older
from ..events.model import EVENT_TYPES, AnyEvent, Event
from ..events.rows import ArtifactRow, Row
from .findings import Findings

GENESIS = "0" * 64
LARGEST_ARTIFACT = 1 << 28
Item = tuple[int, Event]

_DECODE = msgspec.json.Decoder(AnyEvent).decode
_ENCODE = msgspec.json.Encoder(order="deterministic").encode


class Scanned(msgspec.Struct):
    """A ledger read once: decoded events by stream in order of seq, counts, and the head as recomputed."""

    streams: dict[str, list[Item]]
    last: int
    head: str


class _Tag(msgspec.Struct):
    type: Any = None
    rev: Any = None


def scan(rows: Iterable[Row], findings: Findings) -> Scanned:
    """Check and decode every row; an event that is not understood is reported and left out.

    One loop without calls on the good path: this is the hot part of every replay.
    """
    streams: dict[str, list[Item]] = {}
    versions: dict[str, int] = {}
    keep: dict[str, Callable[[Item], None]] = {}
    last, previous = 0, GENESIS
    for row in rows:
        seq, stream, version, kind, at, payload, prev_hash, stored, ill = row
        if seq != last + 1 or prev_hash != previous or ill:
            _misplaced(row, last, previous, findings)
        last, previous = seq, stored
        if stream not in versions:
            versions[stream], streams[stream] = 0, []
            keep[stream] = streams[stream].append
            if not stream.isprintable():
                _check_printable(row, findings)
        if version != versions[stream] + 1:
            findings.add(seq, "version", f"{versions[stream] + 1} in stream {stream}", version)
        versions[stream] = version
        head = (
            f"gpusolver-event-1\n{seq}\n{version}\n{prev_hash}\n{len(stream)}:{stream}\n"
            f"{len(kind)}:{kind}\n{len(at)}:{at}\n{len(payload)}:"
        )
        if not (head.isascii() and at.isprintable()):
            _check_printable(row, findings)
        found = sha256(head.encode("utf-8", "surrogateescape") + payload).hexdigest()
        if found != stored:
            findings.add(seq, "hash", f"{found} (over the stored {kind})", stored)
        try:
            event: Event = _DECODE(payload)
            if event.__class__.__name__ != kind or event.rev != 1 or _ENCODE(event) != payload:
                event = _questionable(row, event, findings)
        except Exception as error:  # noqa: BLE001 - hostile content may raise anything
            undecoded = _undecodable(row, error, findings)
            if undecoded is None:
                continue
            event = undecoded
        keep[stream]((seq, event))
    return Scanned(streams, last, previous)


def _misplaced(row: Row, last: int, previous: str, findings: Findings) -> None:
    if row.seq != last + 1:
        findings.add(row.seq, "sequence", last + 1, row.seq)
    if row.prev_hash != previous:
        findings.add(row.seq, "previous hash", previous, row.prev_hash)
    if row.ill:
        findings.add(row.seq, "column type", "the published storage classes", f"others in {', '.join(row.ill)}")


def _check_printable(row: Row, findings: Findings) -> None:
    for name, text in (("stream", row.stream), ("type", row.type), ("recorded_at", row.recorded_at)):
        if not (text.isascii() and text.isprintable()):
            findings.add(row.seq, "stream", f"{name} in printable ASCII", text)


def _questionable(row: Row, event: Event, findings: Findings) -> Event:
    """A payload that decodes but is not what the row says or not in the one spelling."""
    if type(event).__name__ != row.type:
        findings.add(row.seq, "payload type", row.type, type(event).__name__)
    if event.rev != 1:
        findings.add(row.seq, "event kind not understood", f"{row.type} of revision 1", f"revision {event.rev}")
    again = _ENCODE(event)
    if again != row.payload:
        at = next((i for i, (a, b) in enumerate(zip(again, row.payload, strict=False)) if a != b), len(again))
        found = row.payload[max(0, at - 20) : at + 60].decode("utf-8", "replace")
        findings.add(
            row.seq,
            "payload encoding",
            f"{row.type} encodes again to the stored bytes",
            f"differs at byte {at}: {found}",
        )
    return event


def _undecodable(row: Row, error: Exception, findings: Findings) -> Event | None:
    """Say why a payload does not decode; the event, if it is a sound one of an older revision."""
    try:
        tag = msgspec.json.decode(row.payload, type=_Tag)
        if isinstance(tag.rev, int) and tag.rev != 1:
            return decode_older(row.type, row.payload)
        kind = tag.type
    except Exception:  # noqa: BLE001 - the payload is hostile or not JSON at all; the row's own type is what is left
        kind = row.type
    if kind not in EVENT_TYPES:
        findings.add(row.seq, "event kind not understood", "an event type of the format", kind)
    else:
        if kind != row.type:
            findings.add(row.seq, "payload type", row.type, kind)
        findings.add(row.seq, "payload not understood", f"a {row.type} payload", f"{type(error).__name__}: {error}")
    return None


def check_schema(objects: Iterable[tuple[str, str, str | None]], findings: Findings) -> None:
    """Every schema object byte for byte as published, and no other."""
    published = set(_published())
    stored = set(objects)
    for kind, name, sql in sorted(published - stored, key=str):
        findings.add(0, "schema object", f"{kind} {name}: {sql}", "absent or different")
    for kind, name, sql in sorted(stored - published, key=str):
        findings.add(0, "schema object", "only the objects of events/schema.sql", f"{kind} {name}: {sql}")


def _published() -> list[tuple[str, str, str | None]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(files("gpusolver.events").joinpath("schema.sql").read_text("utf-8"))
        return connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    finally:
        connection.close()


def check_artifacts(rows: Iterable[ArtifactRow], findings: Findings) -> frozenset[str]:
    """Inflate each artifact, never beyond its stated size; the digests that are what they say."""
    sound: set[str] = set()
    for digest, _, size, codec, content, ill in rows:
        found = _inflated(content, codec, size)
        if ill:
            findings.add(
                0, "column type", f"artifact {digest} in the published storage classes", f"others in {', '.join(ill)}"
            )
        elif found is None or len(found) != size:
            findings.add(
                0, "artifact size", f"artifact {digest}: {size} bytes ({codec})", "another length or no such encoding"
            )
        elif sha256(found).hexdigest() != digest:
            findings.add(0, "artifact digest", digest, sha256(found).hexdigest())
        else:
            sound.add(digest)
    return frozenset(sound)


def _inflated(content: bytes, codec: str, size: int) -> bytes | None:
    if codec == "raw":
        return content
    if codec != "zlib" or not 0 <= size <= LARGEST_ARTIFACT:
        return None
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(content, size + 1)
    except zlib.error:
        return None
    return plain if inflater.eof and not inflater.unused_data else None
