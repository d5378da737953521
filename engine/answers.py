"""What a worker's answer must look like before the engine reads on. A candidate shares that process and may write anything in its name."""

from __future__ import annotations

from typing import Any

import msgspec

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..profilers import artifacts as shapes
from ..profilers.second import ROLES
from ..profilers.shapes import Count as FromZero
from .worker.protocol import Compare, Count, Extra, Gate, Message, Reply, Sweep

MALFORMED = "worker_lost"


class Row(msgspec.Struct, frozen=True):
    """What the worker saw of one call of a gate."""

    shape: tuple[FromZero, ...]
    dtype: str
    device_ok: bool
    type_ok: bool
    strides: tuple[FromZero, ...]
    inputs_unchanged: bool


class Rows(shapes.Artifact, frozen=True):
    """A gate's calls in the order of its draws, none where the source failed; nanoseconds that loading and the first call took."""

    error: shapes.ReportError | None
    draws: tuple[Row, ...] = ()
    first_ns: int = 0


class Part(shapes.Samples, frozen=True):
    """Samples with the facts that the engine adds up over parts."""

    before: dict[str, float | None] = msgspec.field(default_factory=dict)  # type: ignore[assignment]
    after: dict[str, float | None] = msgspec.field(default_factory=dict)  # type: ignore[assignment]
    switches: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    first: int = 0


def refusal(request: Message, reply: Reply) -> str:
    """Why `reply` cannot be the answer of a sound worker to `request`; empty where it can. A status other than `ok` answers anything."""
    if reply.status != "ok":
        return ""
    try:
        match request:
            case Gate():
                return _gate(request, reply)
            case Compare():
                shapes.decode(shapes.Samples, reply.artifacts["samples"])
                part = shapes.decode(Part, reply.artifacts["samples"])
                metered = 0 if part.energy is None else len(part.energy)
                return _counted("blocks", len(request.staged.draws) // 2, len(part.blocks)) or _counted(
                    "blocks of energies", len(part.blocks) if request.energy else 0, metered
                )
            case Sweep():
                taken = shapes.decode(shapes.Sweep, reply.artifacts["sweep"]).samples
                each = {len(times) for times in taken if times is not None} - {len(request.staged.draws)}
                return _counted("sources", len(request.sources), len(taken)) or (
                    f"samples: found {each}" if each else ""
                )
            case Count():
                shapes.decode(shapes.Counters, reply.artifacts["counters"])
            case Extra():
                shapes.decode(ROLES.get(request.role, shapes.Artifact), reply.artifacts[request.role])
            case _:
                pass
    except KeyError as missing:
        return f"no artifact {missing}"
    except BadInput as error:
        return str(error)
    return ""


def _gate(request: Gate, reply: Reply) -> str:
    rows = shapes.decode(Rows, reply.artifacts["rows"])
    if rows.error is not None:
        return ""
    listed = shapes.decode(shapes.Launches, reply.artifacts["launches"])
    named = {name for kernel in listed.kernels for name in (kernel.code, kernel.ttir) if name is not None}
    lacking = named - {digest(blob) for _, blob in reply.blobs}
    if lacking:
        return f"launches name artifacts that did not come along: {sorted(lacking)[:3]}"
    return _counted("draws", len(request.staged.draws), len(rows.draws))


def _counted(what: str, expected: int, found: int) -> str:
    return "" if expected == found else f"{what}: expected {expected}, found {found}"
