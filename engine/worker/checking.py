"""The worker's half of a gate: runs a candidate on inputs that were drawn elsewhere and hands the outputs back. Knows no answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch

from . import arena, switches
from .device import AnyDevice
from .inputs import Inputs, copies
from .launches import record_launches
from .loading import LoadError, load_run, told
from .protocol import Arena, Draw, Gate, Place, Reply, Staged

_COMPILE_ERRORS = {
    "CompilationError",
    "OutOfResources",
    "CompileTimeAssertionFailure",
    "PTXASError",
    "UnsupportedLanguageConstruct",
}
# As they are before any candidate is loaded, which may put others in their place.
_STRIDE, _CONTIGUOUS = torch.Tensor.stride, torch.Tensor.is_contiguous
_IS_NEG, _IS_CONJ = torch.Tensor.is_neg, torch.Tensor.is_conj
_OPEN: dict[Arena, arena.Memory] = {}


def gate(device: AnyDevice, request: Gate) -> Reply:
    """The `rows` and `launches` artifacts of one source; a source that fails is rows with `error`, not a fault."""
    began = time.perf_counter_ns()
    try:
        run = load_run(request.source)
    except LoadError as error:
        return _failed("load_error", str(error))
    try:
        memory, draws = opened(request.staged), request.staged.draws
        rows, inputs, first_ns = [], None, 0
        for number, one in enumerate(draws):
            inputs = _inputs(memory, one, over=inputs if number == 1 else None)
            rows.append(_one(device, memory, run, one, one.outputs[0], inputs))
            if number == 0:
                first_ns = time.perf_counter_ns() - began
        repeats = [
            _one(device, memory, run, draws[0], place, _inputs(memory, draws[0])) for place in draws[0].outputs[1:]
        ]
        inputs = _inputs(memory, draws[0])
        with switches.strict():
            launches, blobs = record_launches(device, lambda: run(*inputs))
    except BaseException as error:
        return _failed(outcome(error), told(error), poisoned=_poisoned(device))
    content = msgspec.json.encode({"error": None, "draws": rows, "repeats": repeats, "first_ns": first_ns})
    return Reply(status="ok", artifacts={"rows": content, "launches": launches}, blobs=blobs)


def opened(staged: Staged) -> arena.Memory:
    """The arena of staged draws, opened once."""
    if staged.arena not in _OPEN:
        while _OPEN:  # the referee has replaced it
            arena.leave(_OPEN.popitem()[1])
        _OPEN[staged.arena] = arena.open_arena(staged.arena)
    return _OPEN[staged.arena]


def outcome(error: BaseException) -> str:
    """The gate outcome that an exception stands for."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _COMPILE_ERRORS:
        return "compile_error"
    return "out_of_memory" if "OutOfMemoryError" in names else "run_error"


def deliver(out: Any, memory: arena.Memory, place: Place) -> bool:
    """Copy an output into its place, and leave NaN where it was: the next call on these inputs finds no answer in freed memory."""
    view = memory.at(place)
    if not _plain(out) or out.device.type != view.device.type:
        return False
    if out.shape != view.shape or out.dtype != view.dtype or not _readable(out, place):
        return False
    with torch.inference_mode():  # which an output may have been made in, and then may be written in only
        out = out.detach()
        view.copy_(out)
        if 0 not in _many(out, _STRIDE(out)):  # PyTorch's own answer may be one value, repeated
            out.fill_(float("nan") if out.is_floating_point() else -1)
    return True


def _plain(out: Any) -> bool:
    """Whether an output is a tensor as it stands, which no reader has to negate or conjugate first."""
    return type(out) is torch.Tensor and out.layout is torch.strided and not _IS_NEG(out) and not _IS_CONJ(out)


def _readable(out: torch.Tensor, place: Place) -> bool:
    """Whether an output lies as PyTorch's own answer does, or row by row: whoever reads it must not have to turn it round first."""
    return _CONTIGUOUS(out) or (bool(place.own) and _many(out, _STRIDE(out)) == _many(out, place.own))


def _many(out: torch.Tensor, strides: Sequence[int]) -> list[int]:
    """Those of the dimensions that have more than one index."""
    return [stride for size, stride in zip(out.shape, strides, strict=True) if size > 1]


def _inputs(memory: arena.Memory, one: Draw, over: Inputs | None = None) -> Inputs:
    """Private copies of a draw's inputs, in new memory or in tensors that were inputs before.

    The second draw comes in the objects of the first, version counters and all: what a source keeps by them is stale there.
    """
    views = tuple(memory.at(each) for each in one.inputs)
    if over is None:
        return copies(views)
    for value, view in zip(over, views, strict=True):
        value.data.copy_(view)
    return over


def _one(
    device: AnyDevice, memory: arena.Memory, run: Callable[..., Any], one: Draw, place: Place, inputs: Inputs
) -> dict[str, Any]:
    """One call on inputs that hold a draw's values."""
    views = tuple(memory.at(each) for each in one.inputs)
    device.synchronize()
    with switches.strict():
        out = run(*inputs)
        device.synchronize()
    plain = _plain(out)
    row: dict[str, Any] = {
        "shape": list(out.shape) if plain else [],
        "dtype": str(out.dtype).removeprefix("torch.") if plain else type(out).__name__,
        "device_ok": plain and out.device.type == device.torch_device.type,
        "type_ok": plain,
        "strides": list(_STRIDE(out)) if plain else [],
        "inputs_unchanged": _unchanged(inputs, views),
    }
    row["delivered"] = deliver(out, memory, place)
    device.synchronize()
    return row


def _unchanged(inputs: Inputs, views: Inputs) -> bool:
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(inputs, views, strict=True))


def _failed(kind: str, text: str, poisoned: bool = False) -> Reply:
    error = {"outcome": kind, "text": text[:4000].encode(errors="replace").decode()}
    content = {"error": error, "draws": [], "repeats": []}
    return Reply(status="ok", artifacts={"rows": msgspec.json.encode(content)}, exiting=poisoned)


def _poisoned(device: AnyDevice) -> bool:
    """Whether the context is lost (illegal access): every later call in this process would fail."""
    try:
        device.synchronize()
    except Exception:
        return True
    return False
