"""Artifacts in `extras` by role (FORMAT.md section 5): their shapes, and all of one event read together. Never derives a signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from .artifacts import Count, Launches, Nanoseconds, Positive, Samples
from .shelf import Shelf

Instant = Count
_WARM = {"cuda_event": "warm", "cpu_wall": "warm"}


class Timeline(msgspec.Struct, frozen=True):
    """The kernels of some calls in order of start, and the device time of each framework operator's own kernels."""

    collector: Literal["torch_profiler", "nsys"]
    calls: Annotated[tuple[tuple[tuple[Instant, Instant, str], ...], ...], msgspec.Meta(min_length=1)]
    operators: tuple[tuple[str, Nanoseconds], ...] | None

    def __post_init__(self) -> None:
        for call in self.calls:
            starts = [start for start, _, _ in call]
            if not call or starts != sorted(starts) or any(end <= start for start, end, _ in call):
                raise ValueError(f"expected kernels of length above 0 in order of start, found {call[:3]}")
        names = [name for name, _ in self.operators or ()]
        if len(set(names)) != len(names):
            raise ValueError(f"expected each operator once, found {names[:20]}")


class Warm(Samples, frozen=True):
    """Samples without a flush before a call, both sides the same source."""

    @staticmethod
    def caches() -> dict[str, str]:
        """Warm, by whatever clock."""
        return _WARM


class Mix(msgspec.Struct, frozen=True):
    """Static instruction counts of one kernel's machine code, by opcode with its modifiers."""

    code: str
    mix: dict[str, Count]


class Compiled(msgspec.Struct, frozen=True):
    """What a disassembler counts in a call's machine code."""

    tool: str
    kernels: tuple[Mix, ...]


class Window(msgspec.Struct, frozen=True):
    """Warm calls back to back: their number, energy, length, and the temperature at the end."""

    calls: Positive
    millijoules: Count
    milliseconds: Positive
    temperature_c: int


class Energy(msgspec.Struct, frozen=True):
    """Windows of the energy counter."""

    windows: tuple[Window, ...]


class PerKernel(msgspec.Struct, frozen=True):
    """Counters kernel by kernel: a fact, of which no signal is read."""

    collector: Literal["cupti_kernel_replay"]
    passes: Count
    chip: str
    cache: str
    kernels: tuple[dict[str, int | float | None], ...]


class Extras(msgspec.Struct, frozen=True):
    """The extras of one measurement; None: not among them."""

    timeline: Timeline | None = None
    warm: Warm | None = None
    compiled: Compiled | None = None
    energy: Energy | None = None
    kernels: PerKernel | None = None


NONE = Extras()
SHAPES: dict[str, Any] = {
    "timeline": Timeline,
    "warm": Warm,
    "compiled": Compiled,
    "energy": Energy,
    "kernels": PerKernel,
}


def read_extras(shelf: Shelf, named: Mapping[str, str], launches: Launches) -> Extras:
    """Every artifact of a known role in its shape; other roles are reported elsewhere. Raises ValueError for other content, MissingArtifact."""
    known = {role: digest for role, digest in named.items() if role in SHAPES}
    found = Extras(**{role: shelf.json(digest, SHAPES[role]) for role, digest in known.items()})
    if found.compiled is not None:
        codes = {kernel.code for kernel in launches.kernels}
        strangers = [kernel.code for kernel in found.compiled.kernels if kernel.code not in codes]
        if strangers:
            raise ValueError(f"expected machine code that the launch list names, found {strangers[:5]}")
    return found


def unknown_roles(named: Mapping[str, str]) -> list[str]:
    """Roles that the page does not know."""
    return sorted(named.keys() - SHAPES.keys())
