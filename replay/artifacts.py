"""Artifacts as the verifier reads them: the shapes of FORMAT.md section 5 and a shelf that hands them out by digest. Never writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .findings import MissingArtifact

_LINES = ('PRECISION = "ieee"', 'PRECISION = "tf32"')
_CLOCKS = ("cuda_event", "cpu_wall")
_MOST_BLOCKS = 100_000


class Samples(msgspec.Struct, frozen=True):
    """ABBA blocks in integer nanoseconds: A = against or left, B = source or right."""

    clock: str
    cache: str
    unit: str
    blocks: tuple[tuple[int, int, int, int], ...]

    def __post_init__(self) -> None:
        if len(self.blocks) > _MOST_BLOCKS:
            raise ValueError(f"{len(self.blocks)} blocks, at most {_MOST_BLOCKS} are read")
        if self.unit != "ns" or self.clock not in _CLOCKS:
            raise ValueError(
                f"expected a clock of {', '.join(_CLOCKS)} and unit ns, found {self.clock} and {self.unit}"
            )

    def right(self) -> list[int]:
        """All B samples."""
        return [b for block in self.blocks for b in block[1:3]]


class Sweep(msgspec.Struct, frozen=True):
    """One list of samples (ns) per configuration, None where it did not run."""

    unit: str
    samples: tuple[tuple[int, ...] | None, ...]


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

    def identity(self) -> bytes:
        """What two launches must share to be the same work (FORMAT.md 6.4), as JSON: 1, 1.0 and true are three values."""
        parts = (self.code, self.grid, self.block, self.shared, self.scalars)
        return msgspec.json.encode(parts, order="deterministic")


class Launches(msgspec.Struct, frozen=True):
    """The ordered launches of one call; `complete` says that none is missing."""

    complete: bool
    kernels: tuple[Kernel, ...]


class Counters(msgspec.Struct, frozen=True):
    """Metric values summed over the call's kernels; None = could not be collected."""

    metrics: dict[str, int | float | None]


class Errors(msgspec.Struct, frozen=True):
    """Errors against the reference; None counts as above every limit."""

    rel_l2: float | None
    max_rms: float | None


class Draw(Errors, frozen=True):
    """One checked call of the candidate on fresh inputs."""

    shape: Any
    dtype: Any
    device_ok: bool
    type_ok: bool
    inputs_unchanged: bool
    nonfinite: int


class Failure(msgspec.Struct, frozen=True):
    """How the gate broke off."""

    outcome: str
    text: str


class Expected(msgspec.Struct, frozen=True):
    """The output's expected shape and element type."""

    shape: Any
    dtype: Any


class GateReport(msgspec.Struct, frozen=True):
    """What the gate measured, without any verdict."""

    error: Failure | None = None
    seed: int | None = None
    draws: tuple[Draw, ...] = ()
    expected: Expected | None = None
    trivial: dict[str, Errors] = {}


class Copy(msgspec.Struct, frozen=True):
    """Device copy: bytes read plus bytes written per copy, and the times in ns."""

    bytes: int
    ns: tuple[int, ...]


class Calibration(msgspec.Struct, frozen=True):
    """The device's measured ceilings."""

    copy: Copy


T = TypeVar("T")


class Shelf:
    """Artifacts by digest; only those whose bytes were found to have their digest are handed out."""

    def __init__(self, read: Callable[[str], bytes], sound: frozenset[str]) -> None:
        self._read = read
        self._sound = sound
        self._decoded: dict[tuple[str, type], Any] = {}
        self._dots: dict[str, bool] = {}

    def raw(self, digest: str) -> bytes:
        """The uncompressed bytes. Raises MissingArtifact."""
        if digest not in self._sound:
            raise MissingArtifact(digest)
        return self._read(digest)

    def text(self, digest: str) -> str:
        """A source or template as text."""
        return self.raw(digest).decode()

    def json(self, digest: str, shape: type[T]) -> T:
        """A JSON artifact as `shape`; unknown keys are facts for people and are skipped."""
        key = (digest, shape)
        if key not in self._decoded:
            self._decoded[key] = msgspec.json.decode(self.raw(digest), type=shape)
        found: T = self._decoded[key]
        return found

    def has_dot(self, ttir: str) -> bool:
        """Whether this Triton IR multiplies matrices."""
        if ttir not in self._dots:
            self._dots[ttir] = b"tt.dot" in self.raw(ttir)
        return self._dots[ttir]


def with_precision(source: str, precision: str) -> str | None:
    """The same text with its one PRECISION line set; None where there is not exactly one such line."""
    lines = source.split("\n")
    at = [i for i, line in enumerate(lines) if line in _LINES]
    if len(at) != 1:
        return None
    lines[at[0]] = f'PRECISION = "{precision}"'
    return "\n".join(lines)


def with_config(template: str, config: dict[str, int]) -> str:
    """A template's text with its CONFIG line set."""
    line = "CONFIG = " + json.dumps(config, sort_keys=True)
    return "\n".join(line if old.startswith("CONFIG = ") else old for old in template.split("\n"))
