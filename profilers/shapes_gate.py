"""The shape of what a gate observes: errors against the reference, draw by draw. Never holds an outcome that it judged."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .shapes import Artifact, AtLeastOne, Count, Positive

Fault = Literal["compile_error", "load_error", "run_error", "timeout", "out_of_memory", "worker_lost"]


class Errors(Artifact, frozen=True):
    """Error against another answer: relative L2 norm, and largest element over the RMS; None = not a number."""

    rel_l2: float | None
    max_rms: float | None


class OutputErrors(Errors, frozen=True):
    """Errors of one output, and its elements that are finite or not where the other answer is otherwise."""

    nonfinite: Count


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
    strides: tuple[int, ...] | None = None


class Expected(Artifact, frozen=True):
    """What the reference returns; `strides` are those of PyTorch's own answer, None in reports of before they were asked."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None


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
    trivial: dict[str, Errors] = msgspec.field(default_factory=dict)
    repeat_equal: bool | None = None
    repeats: tuple[OutputErrors, ...] = ()
    wall: Wall | None = None
