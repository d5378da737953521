"""The shapes of the JSON artifacts (replay/FORMAT.md section 5), one for the worker that writes and the code that reads. Never opens a file.

Keys that a shape does not name are facts for people: reading passes over them, and `encode` takes them separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from ..events.errors import BadInput

# A time of 0 ns is no measurement, and as a divisor it would end in an error far from its cause.
Nanoseconds = Annotated[int, msgspec.Meta(gt=0)]
AtLeastOne = msgspec.Meta(min_length=1)
Positive = Annotated[int, msgspec.Meta(gt=0)]
# More is no reading, and so small a part of a call that no digits are left of its heat.
Metered = Annotated[int, msgspec.Meta(gt=0, le=10**12)]
Count = Annotated[int, msgspec.Meta(ge=0)]
FromZero = Annotated[float, msgspec.Meta(ge=0)]
Times = Annotated[tuple[Nanoseconds, ...], msgspec.Meta(min_length=1)]
Scalar = bool | int | float | str | None
Fault = Literal["compile_error", "load_error", "run_error", "timeout", "out_of_memory", "worker_lost"]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every shape here: immutable, keyword-only, open to facts that it does not name."""


class DeviceState(Artifact, frozen=True):
    """The device beside a measurement: SM clock in MHz, NVML's bits of why clocks are held down; None = not read."""

    sm_clock_mhz: FromZero | None = None
    throttle_bits: FromZero | None = None

    def __post_init__(self) -> None:
        if self.throttle_bits is not None and not float(self.throttle_bits).is_integer():
            raise ValueError(f"expected throttle_bits as a whole number, found {self.throttle_bits}")


class Errors(Artifact, frozen=True):
    """Error against another answer: relative L2 norm, and largest element over the RMS; None = not a number."""

    rel_l2: float | None
    max_rms: float | None


class OutputErrors(Errors, frozen=True):
    """Errors of one output, and its elements that are finite or not where the other answer is otherwise."""

    nonfinite: Count


class TimedOutputs(Artifact, frozen=True):
    """Outputs of timed calls: B's against A's per draw, two a block; at the ends of each part, A's and B's against the reference."""

    pairs: Annotated[tuple[OutputErrors, ...], AtLeastOne]
    ends: Annotated[tuple[tuple[OutputErrors, OutputErrors], ...], AtLeastOne]


class Batch(Artifact, frozen=True):
    """Warm calls back to back between two moves of an energy counter: how many, and what they took."""

    millijoules: Metered
    calls: Metered
    milliseconds: Metered


EnergyBlock = tuple[Batch, Batch, Batch, Batch]


class Samples(Artifact, frozen=True):
    """Interleaved timings in ns: blocks of (a, b, b, a), A = against or left, B = source or right.

    `throttled_ns` of the `wall_s` seconds that they took, the device held its clocks down for power or heat. `energy`: as many
    blocks of batches, where they were asked for.
    """

    clock: str
    cache: str
    blocks: Annotated[tuple[tuple[Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds], ...], msgspec.Meta(min_length=1)]
    unit: Literal["ns"] = "ns"
    before: DeviceState | None = None
    after: DeviceState | None = None
    throttled_ns: FromZero | None = None
    wall_s: FromZero | None = None
    outputs: TimedOutputs | None = None
    energy: tuple[EnergyBlock, ...] | None = None

    def __post_init__(self) -> None:
        if self.energy is not None and len(self.energy) != len(self.blocks):
            raise ValueError(f"expected energies of {len(self.blocks)} blocks, found {len(self.energy)}")

    def until(self, blocks: int) -> Samples:
        """The samples as they were after so many blocks."""
        energy = None if self.energy is None else self.energy[:blocks]
        return msgspec.structs.replace(self, blocks=self.blocks[:blocks], energy=energy)


class Sweep(Artifact, frozen=True):
    """Times in ns per configuration, in the order of the configurations; None where one did not compile or run."""

    samples: tuple[Times | None, ...]
    unit: Literal["ns"] = "ns"


class Launch(Artifact, frozen=True):
    """One kernel launch. `code` and `ttir` are artifact digests; `shared`, `static_shared` and `local_bytes` are bytes; None = not known.

    `scalars` are the scalar arguments by name or in order.
    """

    name: str
    language: Literal["triton", "library"]
    code: str | None = None
    ttir: str | None = None
    grid: tuple[Count, ...] | None = None
    block: tuple[Count, ...] | None = None
    shared: Count | None = None
    scalars: dict[str, Scalar] | tuple[Scalar, ...] = ()
    registers: int | None = None
    local_bytes: int | None = None
    static_shared: Count | None = None


class Launches(Artifact, frozen=True):
    """The launches of one call, in order; `complete` says that none is missing."""

    complete: bool
    kernels: tuple[Launch, ...]


class Counters(Artifact, frozen=True, omit_defaults=True):
    """Hardware counters summed over the kernels of one call; None = not collectable on this chip, never 0. `wall_s`: what they cost."""

    collector: str
    passes: int
    chip: str
    cache: str
    metrics: dict[str, int | float | None]
    wall_s: float | None = None


class Draw(Errors, frozen=True):
    """One call of the candidate on drawn inputs, as observed; `nonfinite` counts the elements that are finite, or not, where the
    reference is otherwise. `kind` says what was done to the inputs, `eager` what the problem's eager form in fp32 makes of them.
    """

    shape: tuple[int, ...] | None
    dtype: str | None
    device_ok: bool
    type_ok: bool
    inputs_unchanged: bool
    nonfinite: int
    kind: str = "plain"
    eager: OutputErrors | None = None


class Expected(Artifact, frozen=True):
    """What the reference returns."""

    shape: tuple[int, ...]
    dtype: str


class ReportError(Artifact, frozen=True):
    """Why there are no draws to judge."""

    outcome: Fault
    text: str


class Wall(Artifact, frozen=True):
    """So many calls, each on inputs of its own, in so many ns by another process's watch, and the errors of their outputs."""

    calls: Positive
    ns: Positive
    outputs: Annotated[tuple[OutputErrors, ...], AtLeastOne]


class Report(Artifact, frozen=True):
    """What the gate observed; it holds no verdict. `expected` may be None only where `error` is set.

    `repeats` are further calls on the inputs of draw 0.
    """

    error: ReportError | None
    seed: int
    draws: tuple[Draw, ...] = ()
    expected: Expected | None = None
    trivial: dict[str, Errors] = {}
    repeat_equal: bool | None = None
    repeats: tuple[OutputErrors, ...] = ()
    wall: Wall | None = None


class Copy(Artifact, frozen=True):
    """A device copy: bytes read plus bytes written per copy, and its times in ns."""

    bytes: Positive
    ns: Times


class Product(Artifact, frozen=True):
    """A library matrix product: FLOP each, and its times in ns."""

    flop: Positive
    ns: Times


class DeviceLimits(Artifact, frozen=True):
    """What one streaming multiprocessor holds, and how many there are; shared memory in bytes, clock in MHz."""

    sms: Positive
    warps_per_sm: Positive
    blocks_per_sm: Positive
    registers_per_sm: Positive
    shared_per_sm: Positive
    shared_reserved: Count
    sm_clock_mhz: Positive


class Calibration(Artifact, frozen=True):
    """The measured ceilings of a device and its limits. `l2` is a copy that stays in the L2."""

    copy: Copy
    l2: Copy | None = None
    gemm_fp32: Product | None = None
    gemm_tf32: Product | None = None
    gemm_bf16: Product | None = None
    limits: DeviceLimits | None = None


class Timeline(Artifact, frozen=True):
    """Kernels by call as (start ns, end ns, name), in order of start; device time of each framework operator over calls of its own."""

    collector: Literal["torch_profiler", "nsys"]
    calls: Annotated[tuple[Annotated[tuple[tuple[Count, Count, str], ...], AtLeastOne], ...], AtLeastOne]
    operators: tuple[tuple[str, Nanoseconds], ...] | None = None

    def __post_init__(self) -> None:
        for index, call in enumerate(self.calls):
            starts = [start for start, _, _ in call]
            if starts != sorted(starts) or any(end <= start for start, end, _ in call):
                raise ValueError(f"call {index}: expected kernels of some length in order of start, found {call[:3]}")
        names = [name for name, _ in self.operators or ()]
        if len(set(names)) != len(names):
            raise ValueError(f"expected each operator once, found {names[:20]}")


class CompiledKernel(Artifact, frozen=True):
    """Static instruction counts of one machine code, by opcode with its modifiers; `code` is its digest."""

    code: str
    mix: dict[str, Count]


class Compiled(Artifact, frozen=True):
    """What a disassembler says of a call's kernels."""

    tool: str
    kernels: tuple[CompiledKernel, ...]


class Window(Artifact, frozen=True):
    """Warm calls back to back: their number, what they drew and took, and the temperature at the end."""

    calls: Positive
    millijoules: Count
    milliseconds: Positive
    temperature_c: int


class Energy(Artifact, frozen=True):
    """Energy of a kernel, window by window."""

    windows: tuple[Window, ...]


A = TypeVar("A", bound=Artifact)


def decode(kind: type[A], raw: bytes) -> A:
    """The artifact in `raw`. BadInput names the role (the shape's name in lower case) and the path of what does not fit."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        role = kind.__name__.lower()
        raise BadInput(
            f"artifact '{role}' ({len(raw)} bytes) cannot be read: {error}; expected the shape of '{role}' in "
            f"replay/FORMAT.md section 5, found {raw[:60]!r}; restore the artifact from a copy, or measure again"
        ) from error


def encode(artifact: Artifact, facts: Mapping[str, Any] | None = None) -> bytes:
    """Compact JSON of the artifact, then `facts` as further top-level keys. NaN and infinity become null.

    What was written is read back first, so that nothing unreadable (a time of 0 ns, a wrong type) is ever stored.
    """
    shape = msgspec.to_builtins(artifact)
    if clash := sorted(shape.keys() & (facts or {}).keys()):
        raise BadInput(
            f"facts of artifact '{type(artifact).__name__.lower()}' would replace its own keys {clash}; rename them"
        )
    raw = msgspec.json.encode(shape | dict(facts or {}))
    decode(type(artifact), raw)
    return raw
