"""Artifacts as the verifier reads them: the shapes of FORMAT.md section 5. Never writes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

CACHES = {"cuda_event": "cold", "cpu_wall": "unknown"}
"""The state of the caches before a sample, by clock: the stand-in cannot empty any."""
MOST_BLOCKS = 10_000

# What bounds a value bounds what a forger can put in its place: no time of 0 ns, no negative error or count.
Positive = Annotated[int, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Measured = Annotated[int, msgspec.Meta(gt=0, le=10**12)]
Nanoseconds = Positive
Timed = Annotated[tuple[Nanoseconds, ...], msgspec.Meta(min_length=1)]
Error = Annotated[float, msgspec.Meta(ge=0)] | None
Shape = tuple[Count, ...]


FromZero = Annotated[float, msgspec.Meta(ge=0)] | None


class Errors(msgspec.Struct, frozen=True):
    """Errors against the reference; None counts as above every limit."""

    rel_l2: Error
    max_rms: Error


class OutputErrors(Errors, frozen=True):
    """Errors of one output; `nonfinite` counts the elements that are finite, or not, where the other answer is otherwise."""

    nonfinite: Count


class Outputs(msgspec.Struct, frozen=True):
    """Outputs of timed calls: B's against A's, two a block in order, and at the ends of each part A's and B's against the reference."""

    pairs: tuple[OutputErrors, ...] = ()
    ends: tuple[tuple[OutputErrors, OutputErrors], ...] = ()


class Batch(msgspec.Struct, frozen=True):
    """Warm calls back to back, and what they took."""

    millijoules: Measured
    calls: Measured
    milliseconds: Measured


Energies = tuple[tuple[Batch, Batch, Batch, Batch], ...]


class Samples(msgspec.Struct, frozen=True):
    """ABBA blocks in integer nanoseconds: A = against or left, B = source or right."""

    clock: str
    cache: str
    unit: str
    blocks: tuple[tuple[Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds], ...]
    before: Any = None
    after: Any = None
    throttled_ns: Any = None
    wall_s: Any = None
    outputs: Outputs | None = None
    energy: Energies | None = None

    def __post_init__(self) -> None:
        if len(self.blocks) > MOST_BLOCKS:
            raise ValueError(f"{len(self.blocks)} blocks, at most {MOST_BLOCKS} are read")
        if self.energy is not None and len(self.energy) != len(self.blocks):
            raise ValueError(f"energies of {len(self.energy)} blocks beside {len(self.blocks)} blocks of times")
        due = self.caches().get(self.clock)
        if self.unit != "ns" or due is None or due != self.cache:
            known = ", ".join(f"{clock} with cache {cache}" for clock, cache in self.caches().items())
            raise ValueError(f"expected {known}, in ns; found {self.clock} with cache {self.cache}, in {self.unit}")

    @staticmethod
    def caches() -> dict[str, str]:
        """The state of the caches that goes with each clock."""
        return CACHES

    def telemetry(self) -> tuple[Telemetry, Telemetry]:
        """What was read before and after the samples. Raises ValueError where that is not of its shape."""
        return _telemetry(self.before), _telemetry(self.after)

    def held_down(self) -> tuple[float | None, float | None]:
        """(ns with clocks held down, s that the samples took). Raises ValueError where one is no number from 0."""
        return msgspec.convert(self.throttled_ns, FromZero), msgspec.convert(self.wall_s, FromZero)

    def left(self) -> list[int]:
        """All A samples."""
        return [a for block in self.blocks for a in block[::3]]

    def right(self) -> list[int]:
        """All B samples."""
        return [b for block in self.blocks for b in block[1:3]]


class Telemetry(msgspec.Struct, frozen=True):
    """The device's state beside samples; bits are a whole number, however they are spelled."""

    sm_clock_mhz: Annotated[float, msgspec.Meta(ge=0)] | None = None
    throttle_bits: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def bits(self) -> int | None:
        """The throttle reasons. Raises ValueError where they are no whole number."""
        if self.throttle_bits is None:
            return None
        if not self.throttle_bits.is_integer():
            raise ValueError(f"expected throttle_bits as a whole number, found {self.throttle_bits}")
        return int(self.throttle_bits)


def _telemetry(found: Any) -> Telemetry:
    return Telemetry() if found is None else msgspec.convert(found, Telemetry)


class Sweep(msgspec.Struct, frozen=True):
    """One list of samples (ns) per configuration, None where it did not run."""

    unit: str
    samples: tuple[tuple[Nanoseconds, ...] | None, ...]

    def __post_init__(self) -> None:
        if self.unit != "ns":
            raise ValueError(f"expected the unit ns, found {self.unit}")


class Kernel(msgspec.Struct, frozen=True):
    """One launch of a call."""

    language: str
    code: str | None = None
    ttir: str | None = None
    grid: Any = None
    block: Any = None
    shared: Any = None
    scalars: Any = None
    registers: int | None = None
    local_bytes: int | None = None
    static_shared: Count | None = None

    def identity(self) -> bytes:
        """What two launches must share to be the same work (FORMAT.md 6.4), as JSON: 1, 1.0 and true are three values."""
        parts = (self.code, self.grid, self.block, self.shared, self.scalars)
        return msgspec.json.encode(parts, order="deterministic")


class Launches(msgspec.Struct, frozen=True):
    """The ordered launches of one call; `complete` says that none is missing."""

    complete: bool
    kernels: tuple[Kernel, ...]


class Counters(msgspec.Struct, frozen=True):
    """Metric values summed over the call's kernels; None = could not be collected. Collector `none`: none could be read."""

    collector: str
    chip: str
    metrics: dict[str, int | float | None]

    def __post_init__(self) -> None:
        if not self.read() and self.metrics:
            raise ValueError("metrics of the collector none, which read none")

    def read(self) -> bool:
        """Whether counters were read at all."""
        return self.collector != "none"


class Draw(Errors, frozen=True):
    """One checked call of the candidate on fresh inputs; `kind`: what was done to them, `eager`: errors of the problem's eager form."""

    shape: Shape | None
    dtype: str | None
    device_ok: bool
    type_ok: bool
    inputs_unchanged: bool
    nonfinite: Count
    kind: Literal["plain", "large", "small", "one_sign", "denormal", "mixed_signs"] = "plain"
    eager: OutputErrors | None = None
    strides: Shape | None = None


class Failure(msgspec.Struct, frozen=True):
    """How the gate broke off."""

    outcome: str
    text: str


class Expected(msgspec.Struct, frozen=True):
    """The output's expected shape, element type and, since they are asked, strides."""

    shape: Shape
    dtype: str
    strides: Shape | None = None


class Wall(msgspec.Struct, frozen=True):
    """So many calls on inputs of their own, the ns that they took by another process's watch, and the errors of their outputs."""

    calls: Positive
    ns: Nanoseconds
    outputs: Annotated[tuple[OutputErrors, ...], msgspec.Meta(min_length=1)]


class GateReport(msgspec.Struct, frozen=True):
    """What the gate measured, without any verdict; `repeats`: further calls on the inputs of draw 0."""

    error: Failure | None = None
    seed: int | None = None
    draws: tuple[Draw, ...] = ()
    expected: Expected | None = None
    trivial: dict[str, Errors] = {}
    repeats: tuple[OutputErrors, ...] = ()
    wall: Wall | None = None
