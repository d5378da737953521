"""The referee's half of a gate: draws inputs into shared memory and compares what comes back with float64. Runs no candidate, judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from msgspec import structs

from ...problems.exact import Exact
from . import arena, switches
from .device import AnyDevice
from .errors import Row, errors, trivial
from .inputs import Inputs, draw
from .loading import load_reference, load_run
from .protocol import Asked, Check, Draw, Place, Reply, Stage, Staged, Subject

_NO_ANSWER: Row = {"nonfinite": 0, "rel_l2": None, "max_rms": None}
_CPU_CAPACITY, _GPU_SHARE = 64 << 20, 16
Laid = tuple[tuple[int, ...], tuple[int, ...], str]
"""Sizes, strides and dtype of an answer."""


class _Ground:
    """The arena, and what was staged in it last."""

    memory: arena.Memory | None = None
    staged: Staged | None = None
    asked: tuple[Asked, ...] = ()
    outputs: dict[tuple[str, str, str], Laid] = {}  # noqa: RUF012
    exact: dict[tuple[str, str], Exact] = {}  # noqa: RUF012


_GROUND = _Ground()


def stage(device: AnyDevice, request: Stage) -> Reply:
    """`Staged`: as many of the asked draws as the arena may hold. Places for outputs are filled with NaN."""
    laid = _output(device, request.subject)
    first = draw(device, request.subject, request.draws[0].index, request.draws[0].kind)
    plans: list[tuple[Asked, list[Place]]] = []
    end = 0
    for asked in request.draws:
        places, reached = _places(first, laid, asked.outputs, end)
        if len(plans) >= request.at_least and reached > _capacity(device):
            break
        plans.append((asked, places))
        end = reached
    plans = plans[: len(plans) // request.at_least * request.at_least]
    memory = _memory(device, end)
    draws = tuple(_drawn(device, request.subject, memory, asked, places, len(first)) for asked, places in plans)
    device.synchronize()
    _GROUND.staged, _GROUND.asked = Staged(arena=memory.arena, draws=draws), tuple(asked for asked, _ in plans)
    device.release(_capacity(device))
    return Reply(status="ok", staged=_GROUND.staged)


def _output(device: AnyDevice, subject: Subject) -> Laid:
    """The reference's shape, the strides of the eager form's answer, and OUTPUT_DTYPE or the first input's dtype."""
    key = (*_sized(subject), subject.eager)
    if key not in _GROUND.outputs:
        inputs = draw(device, subject, 0)
        shape, dtype = tuple(_reference(subject, inputs).shape), _dtype(subject, inputs)
        _GROUND.outputs[key] = shape, _strides(subject, inputs, shape), dtype
    return _GROUND.outputs[key]


def _strides(subject: Subject, inputs: Inputs, shape: tuple[int, ...]) -> tuple[int, ...]:
    """How PyTorch's own answer lies in memory, gaps and repetitions of a view included; row by row where there is no eager form."""
    if subject.eager:
        with switches.strict(), torch.no_grad():
            answer = load_run(subject.eager)(*inputs)
        if answer.shape == shape:
            return tuple(answer.stride())
    return torch.empty(shape, device="meta").stride()


def _places(inputs: Inputs, laid: Laid, outputs: int, offset: int) -> tuple[list[Place], int]:
    shape, own, dtype = laid
    by_rows = torch.empty(shape, device="meta").stride()
    tensors: list[tuple[Sequence[int], Sequence[int], torch.dtype]] = [(v.shape, v.stride(), v.dtype) for v in inputs]
    places, end = arena.layout([*tensors, *[(shape, by_rows, getattr(torch, dtype))] * outputs], offset)
    return [*places[: len(inputs)], *(structs.replace(place, own=own) for place in places[len(inputs) :])], end


def _memory(device: AnyDevice, size: int) -> arena.Memory:
    """The arena, made anew where it is too small. Rounded up, so that it seldom is."""
    if _GROUND.memory is None or _GROUND.memory.arena.size < size or not arena.there(_GROUND.memory):
        # Where no other can be had, nothing must refer to this one any more.
        old, _GROUND.memory, _GROUND.staged = _GROUND.memory, None, None
        if old is not None:
            arena.close(old)
        device.release()
        _GROUND.memory = arena.create(device.name == "cuda", max(size, _capacity(device)))
    return _GROUND.memory


def _capacity(device: AnyDevice) -> int:
    if device.name != "cuda":
        return _CPU_CAPACITY
    return torch.cuda.get_device_properties(device.torch_device).total_memory // _GPU_SHARE


def _drawn(
    device: AnyDevice, subject: Subject, memory: arena.Memory, asked: Asked, places: list[Place], inputs: int
) -> Draw:
    for place, value in zip(places[:inputs], draw(device, subject, asked.index, asked.kind), strict=True):
        memory.at(place).copy_(value)
    for place in places[inputs:]:
        view = memory.at(place)
        view.fill_(float("nan") if view.is_floating_point() else -1)
    return Draw(index=asked.index, inputs=tuple(places[:inputs]), outputs=tuple(places[inputs:]))


def check(device: AnyDevice, request: Check) -> Reply:
    """The artifact `errors` of the last staged draws. Inputs are drawn again: a worker may have written over those in the arena."""
    staged, memory = _GROUND.staged, _GROUND.memory
    if staged is None or memory is None:
        return Reply(status="request_failed", text="nothing is staged")
    by_reference = request.against == "reference"
    content = _by_reference(device, request, memory) if by_reference else _by_outputs(device, request, memory)
    device.release(_capacity(device))  # answers in float64 are large, and a candidate is to have the card
    return Reply(status="ok", artifacts={"errors": msgspec.json.encode(content)})


def _by_reference(device: AnyDevice, request: Check, memory: arena.Memory) -> dict[str, Any]:
    assert _GROUND.staged is not None
    eager = load_run(request.subject.eager) if request.subject.eager else None
    rows: list[Row] = []
    first, second = None, None
    for asked, staged in zip(_GROUND.asked, _GROUND.staged.draws, strict=True):
        inputs = draw(device, request.subject, asked.index, asked.kind)
        expected = _reference(request.subject, inputs)
        found = [errors(memory.at(place), expected) for place in staged.outputs]
        own = None
        if asked.kind != "plain" and eager is not None:
            with switches.strict():
                own = errors(eager(*inputs), expected)
        rows.append({"kind": asked.kind, "outputs": found, "eager": own})
        if first is None:
            first = (inputs, expected)
        elif second is None and asked.kind == "plain":
            second = expected
    assert first is not None
    inputs, expected = first
    return {
        "draws": rows,
        "trivial": trivial(inputs, expected, second),
        "repeat_equal": _equal([memory.at(place) for place in _GROUND.staged.draws[0].outputs]),
        "expected": {
            "shape": list(expected.shape),
            "dtype": _dtype(request.subject, inputs),
            "strides": list(_GROUND.staged.draws[0].outputs[0].own),
        },
    }


def _as_drawn(device: AnyDevice, subject: Subject, memory: arena.Memory, asked: Asked, one: Draw) -> bool:
    """Whether the inputs still lie in the arena as they were drawn: a worker that made them all alike could answer once for all."""
    drawn = draw(device, subject, asked.index, asked.kind)
    return all(torch.equal(memory.at(place), value) for place, value in zip(one.inputs, drawn, strict=True))


def _equal(outputs: list[torch.Tensor]) -> bool:
    """Whether the outputs of equal calls are equal to the bit."""
    return all(torch.equal(one.nan_to_num(), outputs[0].nan_to_num()) for one in outputs[1:])


def _by_outputs(device: AnyDevice, request: Check, memory: arena.Memory) -> dict[str, Any]:
    """Second output against the first, draw by draw; at the ends of the measurement either against the reference, which may take seconds."""
    assert _GROUND.staged is not None
    draws = _GROUND.staged.draws
    pairs = [
        errors(memory.at(one.outputs[1]), memory.at(one.outputs[0]))
        if _as_drawn(device, request.subject, memory, asked, one)
        else dict(_NO_ANSWER)
        for asked, one in zip(_GROUND.asked, draws, strict=True)
    ]
    ends: list[list[Row]] = []
    ends_at = {number for number, asked in ((0, request.begins), (len(draws) - 1, request.ends)) if asked}
    for position in sorted(ends_at):
        inputs = draw(device, request.subject, draws[position].index, _GROUND.asked[position].kind)
        expected = _reference(request.subject, inputs)
        ends.append([errors(memory.at(place), expected) for place in draws[position].outputs])
    return {"pairs": pairs, "ends": ends}


def _dtype(subject: Subject, inputs: Inputs) -> str:
    """An answer has the dtype of the first input, unless the reference file says otherwise."""
    stated: str | None = getattr(load_reference(subject.reference), "OUTPUT_DTYPE", None)
    return stated or str(inputs[0].dtype).removeprefix("torch.")


def _reference(subject: Subject, inputs: Inputs) -> torch.Tensor:
    by = _GROUND.exact.setdefault(_sized(subject), Exact())
    with switches.strict(), torch.no_grad():
        return by(lambda: load_reference(subject.reference).reference(*inputs))


def _sized(subject: Subject) -> tuple[str, str]:
    return subject.reference, msgspec.json.encode(subject.shape, order="sorted").decode()
