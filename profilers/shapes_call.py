"""The shapes of what one call of a kernel consists of and does: launches, counters, timeline, machine code, energy. Never holds a signal."""

from __future__ import annotations

from typing import Annotated, Literal

from .shapes import Artifact, AtLeastOne, Count, Nanoseconds, Positive

Scalar = bool | int | float | str | None


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
