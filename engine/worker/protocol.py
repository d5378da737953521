"""Messages between the engine and its workers: length-prefixed msgpack frames. Never imports torch."""

from __future__ import annotations

import struct
from typing import IO

import msgspec

LENGTH = struct.Struct(">Q")
MAX_FRAME = 1 << 28


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every request; its reply bears the same `number`."""

    number: int = 0


class Hello(Message, frozen=True, tag=True):
    """Ask what device and software the worker runs on; `warm` loads what a first kernel would wait for."""

    warm: bool = False


class Calibrate(Message, frozen=True, tag=True):
    """Measure the copy, L2 and matrix-product ceilings, and read the device's limits."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel is run on: the problem's reference file, its sizes by name, the seed of its inputs, and whether a gate mixes their
    signs: of the inputs at the places `tossed`, of all where none is named. `eager` is the problem's eager form, a trusted source."""

    reference: str
    shape: dict[str, int]
    seed: int
    mixed: bool = False
    tossed: tuple[int, ...] = ()
    eager: str = ""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tensor lies in an arena: byte offset, sizes, strides in elements, dtype by torch's name.

    `own` are the strides of PyTorch's own answer, in which an output that goes there may come, as well as row by row.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    own: tuple[int, ...] = ()


class Arena(msgspec.Struct, frozen=True, kw_only=True):
    """A block of memory that the referee made and workers may open: `key` is a file's path, or a CUDA IPC handle in hex."""

    kind: str
    key: str
    size: int


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """One set of inputs, and the places that wait for outputs: places filled with NaN, which is what is left of an answer that never came."""

    index: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """Draws in an arena."""

    arena: Arena
    draws: tuple[Draw, ...]


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A source that a program of its own runs on each of these draws."""

    source: str
    subject: Subject
    draws: tuple[Asked, ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A draw that is wanted: its number, the kind of its values, and how many outputs wait for it."""

    index: int
    kind: str = "plain"
    outputs: int = 1


class Stage(Message, frozen=True, tag=True):
    """Referee: draw inputs into the arena, as many of `draws` as it holds, `at_least` so many, and a multiple of that. Reply: `Staged`."""

    subject: Subject
    draws: tuple[Asked, ...]
    at_least: int = 1


class Check(Message, frozen=True, tag=True):
    """Referee: errors of what lies in the places of the last staged draws.

    `against` is `reference` (each output against the float64 answer, with trivial answers beside), or `outputs` (the second output of
    each draw against its first; the first draw where it `begins` a measurement and the last where it `ends` one against the float64 answer
    as well).
    """

    subject: Subject
    against: str
    begins: bool = True
    ends: bool = True


class Gate(Message, frozen=True, tag=True):
    """Compile and run one source on every staged draw, `repeats` times more on the first one, and list the kernels that it launches.

    Draw i goes into its first place; repetition r of the first draw into that draw's place r + 1.
    """

    source: str
    staged: Staged
    repeats: int


class Compare(Message, frozen=True, tag=True):
    """Time two sources (A = left, B = right), cold L2, on staged draws: two a block, the first of which has number `first`.

    Block i takes A, B on its first draw and B, A on its second; blocks of an odd number B, A and A, B. Outputs of A go into the
    first place of a draw, of B into the second. `before` and `after` say whether to read the device's state then; `energy`
    whether to meter warm calls of both beside, block by block, whose last outputs are then those of the last draw.
    """

    left: str
    right: str
    staged: Staged
    first: int
    before: bool = True
    after: bool = True
    energy: bool = False


class Call(Message, frozen=True, tag=True):
    """Call a source once on each staged draw, back to back; outputs go into place number `place` of each. Nothing is timed here."""

    source: str
    staged: Staged
    place: int


class Sweep(Message, frozen=True, tag=True):
    """Time each source once on every staged draw, in turn, cold L2; a source that fails gives null."""

    sources: tuple[str, ...]
    staged: Staged


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


class FindMeter(Message, frozen=True, tag=True):
    """Ask whether the device's energy can be read."""


AnyRequest = Hello | FindMeter | Calibrate | Stage | Check | Gate | Compare | Call | Sweep | Count | Extra


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is `ok` or a fault's name; `artifacts` by role; `blobs` are (media type, bytes) that artifacts refer to; `staged` answers Stage."""

    status: str
    text: str = ""
    artifacts: dict[str, bytes] = {}
    blobs: tuple[tuple[str, bytes], ...] = ()
    facts: dict[str, str] = {}
    staged: Staged | None = None
    exiting: bool = False
    number: int = 0


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
