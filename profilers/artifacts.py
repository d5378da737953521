"""The JSON artifacts (replay/FORMAT.md section 5): reading and writing them, and every shape under its name. Never opens a file.

The worker that writes and the code that reads share one shape: of a call's kernels in `shapes_call`, of the gate's report in
`shapes_gate`, of timed calls in `shapes_timing`, of the device in `shapes_device`. Keys that a shape does not name are facts for
people: reading passes over them, and `encode` takes them separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ..events.errors import BadInput
from .shapes import Artifact
from .shapes_call import Compiled, CompiledKernel, Counters, Energy, Launch, Launches, Timeline, Window
from .shapes_device import Calibration, Copy, DeviceLimits, Product
from .shapes_gate import Draw, Errors, Expected, Fault, OutputErrors, Report, ReportError, Wall
from .shapes_timing import Batch, DeviceState, EnergyBlock, Samples, Sweep, TimedOutputs

__all__ = [
    "Artifact",
    "Batch",
    "Calibration",
    "Compiled",
    "CompiledKernel",
    "Copy",
    "Counters",
    "DeviceLimits",
    "DeviceState",
    "Draw",
    "Energy",
    "EnergyBlock",
    "Errors",
    "Expected",
    "Fault",
    "Launch",
    "Launches",
    "OutputErrors",
    "Product",
    "Report",
    "ReportError",
    "Samples",
    "Sweep",
    "TimedOutputs",
    "Timeline",
    "Wall",
    "Window",
    "decode",
    "encode",
]

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
