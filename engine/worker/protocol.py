"""Messages between the engine and its GPU worker: length-prefixed msgpack frames. Never imports torch."""

from __future__ import annotations

import struct
from typing import IO

import msgspec

LENGTH = struct.Struct(">Q")
MAX_FRAME = 1 << 30


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every request."""


class Hello(Message, frozen=True, tag=True):
    """Ask what device and software the worker runs on."""


class Calibrate(Message, frozen=True, tag=True):
    """Measure the copy, L2 and matrix-product ceilings, and read the device's limits."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel is run on: the problem's reference file, its sizes by name, and the seed of its inputs."""

    reference: str
    shape: dict[str, int]
    seed: int


class Gate(Message, frozen=True, tag=True):
    """Compile and run one source, compare it with the float64 reference, and list the kernels that it launches."""

    subject: Subject
    source: str
    draws: int = 2


class Compare(Message, frozen=True, tag=True):
    """Time two sources in `blocks` ABBA blocks (A = left, B = right), cold L2. Block i has the inputs of draw `first` + i."""

    subject: Subject
    left: str
    right: str
    blocks: int
    first: int = 0


class Sweep(Message, frozen=True, tag=True):
    """Time each source `samples` times in turn, cold L2; a source that fails gives null."""

    subject: Subject
    sources: tuple[str, ...]
    samples: int


class Count(Message, frozen=True, tag=True):
    """Read hardware counters over one call of a source, cold L2 before every pass."""

    subject: Subject
    source: str
    metrics: tuple[str, ...]


class Extra(Message, frozen=True, tag=True):
    """Take the extra measurement `role` of one source."""

    subject: Subject
    source: str
    role: str


AnyRequest = Hello | Calibrate | Gate | Compare | Sweep | Count | Extra


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is `ok` or a fault's name; `artifacts` by role; `blobs` are (media type, bytes) that artifacts refer to."""

    status: str
    text: str = ""
    artifacts: dict[str, bytes] = {}
    blobs: tuple[tuple[str, bytes], ...] = ()
    facts: dict[str, str] = {}
    exiting: bool = False


def frame(message: Message | Reply) -> bytes:
    """One frame: the payload's length in 8 bytes, big-endian, and the payload."""
    payload = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(payload)) + payload


def send(stream: IO[bytes], message: Message | Reply) -> None:
    """Write one frame."""
    stream.write(frame(message))
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame's payload, or None at the end of the stream; raises ValueError for a frame that cannot be ours."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    if size > MAX_FRAME:
        raise ValueError(f"frame of {size} bytes; at most {MAX_FRAME} expected")
    payload = stream.read(size)
    return payload if len(payload) == size else None
