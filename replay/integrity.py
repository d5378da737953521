"""File, chain and artifact checks of FORMAT.md sections 1 to 3, decoding each event once. Never trusts a stored hash."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import msgspec

from ..events.codec import decode as decode_older
from ..events.model import EVENT_TYPES, AnyEvent, Event
from ..events.rows import Row
from .findings import Findings
from .merkle import Heads, Portion

GENESIS = "0" * 64
SEAL_STREAM = "seal"
_PORTION = 256  # event hashes that go into the tree at once
Item = tuple[int, Event]

_DECODE = msgspec.json.Decoder(AnyEvent).decode
_ENCODE = msgspec.json.Encoder(order="deterministic").encode


_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"
)


class Backwards(msgspec.Struct, frozen=True):
    """How often `recorded_at` went back from one event to the next, at which event first, and what it was last."""

    times: int = 0
    first: int = 0
    at: str = ""


class Scanned(msgspec.Struct):
    """A ledger read once: decoded events by stream in order of seq, counts, the head, and the tree over the hashes as recomputed."""

    streams: dict[str, list[Item]]
    last: int
    head: str
    heads: Heads
    back: Backwards = Backwards()


class Place(msgspec.Struct, frozen=True):
    """Where a portion of a ledger begins: behind the row `last` with hash `head`, and behind so many seals."""

    last: int
    head: str
    seals: int
    at: str


class GoesOn(Exception):
    """A run or examination goes on after its end, which no honest one does."""


class _Tag(msgspec.Struct):
    type: Any = None
    rev: Any = None


@contextmanager
def without_collector() -> Iterator[None]:
    """No cycle collection inside: events hold no cycles, and the collector would walk all those read again and again.

    For a whole function (it is a decorator, too), so that its events are gone before the collector is back.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def scan(
    rows: Iterable[Row],
    findings: Findings,
    *,
    spelling: bool = True,
    sizes: Iterable[int] = (),
    after: Place | None = None,
    ended: Callable[[Scanned], None] | None = None,
) -> Scanned:
    """Check and decode every row; an event that is not understood is reported and left out.

    `ended` is handed the streams of each run and examination at its RunStopped, which are then let go: memory holds what is
    open. What comes back are the streams that are left. GoesOn where one of them has a further event: read it again whole.

    `spelling`: also encode each event again, which must give the stored bytes (a tenth of a replay's time). `sizes`: where
    the tree's head is asked for, beside those that the ledger's seals ask for. `after`: the rows are those from there on.
    One loop with three calls a row on the good path: this is the hot part of every replay.
    """
    streams: dict[str, list[Item]] = {}
    versions: dict[str, int] = {}
    closed: set[str] = set()
    last, previous, clock = 0, GENESIS, _Clock()
    heads, leaves = Heads(sizes), list[bytes]()
    if after is not None:
        last, previous, heads, clock.at = after.last, after.head, Portion(after.last, sizes), after.at
        versions[SEAL_STREAM] = after.seals
    for row in rows:
        seq, stream, version, kind, at, _, prev_hash, stored, ill = row
        if seq != last + 1 or prev_hash != previous or ill:
            _misplaced(row, last, previous, findings)
        last, previous = seq, stored
        items = streams.get(stream)
        if items is None:
            streams[stream] = items = _opened(row, versions, closed, findings)
        if version != versions[stream] + 1:
            findings.add(seq, "version", f"{versions[stream] + 1} in stream {stream}", version)
        versions[stream] = version
        if at != clock.at:
            clock.read(seq, at, findings)
        found = _digest(row)
        if found.hex() != stored:
            findings.add(seq, "hash", f"{found.hex()} (over the stored {kind})", stored)
        if kind == "LedgerSealed" or len(leaves) == _PORTION:
            _grow(heads, leaves, sealed=kind == "LedgerSealed")
        leaves.append(found)
        event = _decoded(row, spelling, findings)
        if event is None:
            continue
        items.append((seq, event))
        if kind == "RunStopped" and ended is not None and "/" not in stream and stream.startswith(("run", "exam")):
            closed.add(stream)
            ended(Scanned(_let_go(stream, streams), seq, stored, heads))
    heads.extend(leaves)
    return Scanned(streams, last, previous, heads, Backwards(clock.times, clock.first, clock.at))


class _Clock:
    """The last `recorded_at`, and how often it went back, first at which event."""

    def __init__(self) -> None:
        self.at, self.times, self.first = "", 0, 0

    def read(self, seq: int, at: str, findings: Findings) -> None:
        """Take another time than the last."""
        if at < self.at:
            self.times, self.first = self.times + 1, self.first or seq
        self.at = at
        if not _TIME.fullmatch(at):
            findings.add(seq, "time", "UTC as 2026-01-31T23:59:59.999Z", at)


def _opened(row: Row, versions: dict[str, int], closed: set[str], findings: Findings) -> list[Item]:
    """A stream at its first event, or at its first one after it was let go, which may be of no run that has ended."""
    versions.setdefault(row.stream, 0)
    _check_printable(row, findings)
    if row.stream.partition("/")[0] in closed:
        raise GoesOn(row.stream)
    return []


def _digest(row: Row) -> bytes:
    """The hash of FORMAT.md section 2, from the row's own columns."""
    seq, stream, version, kind, at, payload, prev_hash, _, _ = row
    head = (
        f"gpusolver-event-1\n{seq}\n{version}\n{prev_hash}\n{len(stream)}:{stream}\n"
        f"{len(kind)}:{kind}\n{len(at)}:{at}\n{len(payload)}:"
    )
    return sha256(head.encode("utf-8", "surrogateescape") + payload).digest()


def _grow(heads: Heads, leaves: list[bytes], *, sealed: bool) -> None:
    heads.extend(leaves)
    leaves.clear()
    if sealed:
        heads.mark()


def _decoded(row: Row, spelling: bool, findings: Findings) -> Event | None:
    """The row's event; None, with a finding, where it is not understood."""
    try:
        event: Event = _DECODE(row.payload)
        sound = event.__class__ is EVENT_TYPES.get(row.type) and event.rev == 1
        if not sound or (spelling and _ENCODE(event) != row.payload):
            event = _questionable(row, event, findings)
    except Exception as error:  # noqa: BLE001 - hostile content may raise anything
        return _undecodable(row, error, findings)
    return event


def _let_go(run: str, streams: dict[str, list[Item]]) -> dict[str, list[Item]]:
    """Take a run's own stream and those of its cells out of `streams`."""
    names = [name for name in streams if name == run or name.startswith(f"{run}/")]
    return {name: streams.pop(name) for name in names}


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
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        findings.add(row.seq, "event kind not understood", "an event type of the format", kind)
    else:
        if kind != row.type:
            findings.add(row.seq, "payload type", row.type, kind)
        findings.add(row.seq, "payload not understood", f"a {row.type} payload", f"{type(error).__name__}: {error}")
    return None
