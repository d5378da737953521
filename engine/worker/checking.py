"""Measures a candidate's errors against the float64 reference on fresh inputs. Reports numbers; the engine judges them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from . import switches
from .device import AnyDevice
from .launches import record_launches
from .loading import LoadError, load_reference, load_run
from .protocol import Gate, Reply
from .timing import draw

_COMPILE_ERRORS = {
    "CompilationError",
    "OutOfResources",
    "CompileTimeAssertionFailure",
    "PTXASError",
    "UnsupportedLanguageConstruct",
}


def gate(device: AnyDevice, request: Gate) -> Reply:
    """The `report` and `launches` artifacts of one source; a source that fails is a report with `error`, not a fault."""
    try:
        run = load_run(request.source)
    except LoadError as error:
        return _failed(request, "load_error", str(error))
    try:
        with switches.strict():
            report = _report(device, request, run)
        inputs = draw(device, request.subject, 0)
        with switches.strict():
            launches, blobs = record_launches(device, lambda: run(*inputs))
    except BaseException as error:
        return _failed(request, outcome(error), f"{type(error).__name__}: {error}", poisoned=_poisoned(device))
    return Reply(status="ok", artifacts={"report": report, "launches": launches}, blobs=blobs)


def outcome(error: BaseException) -> str:
    """The gate outcome that an exception stands for."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _COMPILE_ERRORS:
        return "compile_error"
    return "out_of_memory" if "OutOfMemoryError" in names else "run_error"


def _failed(request: Gate, kind: str, text: str, poisoned: bool = False) -> Reply:
    error = {"outcome": kind, "text": text[:4000].encode(errors="replace").decode()}
    report = {"error": error, "seed": request.subject.seed, "draws": []}
    content = {**report, "expected": {"shape": [], "dtype": ""}, "trivial": {}, "repeat_equal": False}
    return Reply(status="ok", artifacts={"report": msgspec.json.encode(content)}, exiting=poisoned)


def _poisoned(device: AnyDevice) -> bool:
    """Whether the context is lost (illegal access): every later call in this process would fail."""
    try:
        device.synchronize()
    except Exception:
        return True
    return False


def _report(device: AnyDevice, request: Gate, run: Callable[..., Any]) -> bytes:
    reference = load_reference(request.subject.reference).reference
    draws = [_one_draw(device, run, draw(device, request.subject, index), reference) for index in range(request.draws)]
    inputs = draw(device, request.subject, 0)
    repeat_equal = _equal(_call(device, run, inputs), _call(device, run, inputs))
    inputs = draw(device, request.subject, 0)  # drawn again: a candidate may have changed them
    expected = reference(*inputs)
    content = {
        "error": None,
        "seed": request.subject.seed,
        "draws": draws,
        "trivial": _trivial_errors(inputs, expected),
        "repeat_equal": repeat_equal,
        "expected": {"shape": list(expected.shape), "dtype": str(inputs[0].dtype).removeprefix("torch.")},
    }
    return msgspec.json.encode(content)


def _call(device: AnyDevice, run: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> Any:
    with switches.strict():
        out = run(*inputs)
        device.synchronize()
    return out


def _one_draw(
    device: AnyDevice, run: Callable[..., Any], inputs: tuple[torch.Tensor, ...], reference: Callable[..., torch.Tensor]
) -> dict[str, Any]:
    """One fresh draw: the candidate runs first, so that no answer lies in memory or in a frame while it runs."""
    kept = [value.clone() for value in inputs]
    _poison(reference(*(value.clone() for value in inputs)), inputs[0].dtype)
    out = _call(device, run, inputs)
    expected = reference(*kept)
    row: dict[str, Any] = {
        "shape": [],
        "dtype": type(out).__name__,
        "device_ok": False,
        "type_ok": type(out) is torch.Tensor,
    }
    row |= {"inputs_unchanged": all(map(_equal, kept, inputs)), "nonfinite": 0, "rel_l2": None, "max_rms": None}
    if type(out) is torch.Tensor:
        row |= {"shape": list(out.shape), "dtype": str(out.dtype).removeprefix("torch.")}
        row["device_ok"] = out.device.type == device.torch_device.type
        if row["device_ok"] and out.shape == expected.shape:
            row |= {"nonfinite": int((~torch.isfinite(out)).sum()), **errors(out, expected)}
    return row


def _poison(answer: torch.Tensor, dtype: torch.dtype) -> None:
    """Overwrite an answer with NaN and leave freed NaN blocks of the output's size: unwritten memory then reads as NaN."""
    answer.fill_(float("nan"))
    blocks = [torch.full_like(answer, float("nan"), dtype=dtype) for _ in range(3)]
    blocks.clear()


def _equal(a: Any, b: Any) -> bool:
    return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and torch.equal(a, b)


def errors(out: torch.Tensor, expected: torch.Tensor) -> dict[str, float | None]:
    """||out - expected|| / ||expected|| and max |out - expected| / rms(expected); null where not finite."""
    difference = out.double() - expected
    norm = torch.linalg.vector_norm(expected)
    relative = (torch.linalg.vector_norm(difference) / norm).item()
    largest = (difference.abs().max() / (norm / expected.numel() ** 0.5)).item()
    return {"rel_l2": _finite(relative), "max_rms": _finite(largest)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _trivial_errors(inputs: tuple[torch.Tensor, ...], expected: torch.Tensor) -> dict[str, dict[str, float | None]]:
    """Errors of answers that no kernel had to compute: a problem on which one of them passes is unfit."""
    answers = {
        "zeros": torch.zeros_like(expected),
        "ones": torch.ones_like(expected),
        "mean": torch.full_like(expected, expected.mean().item()),
        "shuffled": expected.flatten().roll(expected.numel() // 2 + 1).view_as(expected),
    }
    for index, value in enumerate(inputs):
        if value.shape == expected.shape:
            answers[f"input_{index}"] = value.double()
    return {name: errors(answer, expected) for name, answer in answers.items()}
