"""Child process of the importer: runs a user's file to learn how it is called, how large it is, and how exact fp32 is there. Times nothing.

Usage: python -m gpusolver.problems.probe, with lines `ASKED <tab> ANSWER` on standard input, both JSON files. Each is answered in a
fork that finds torch imported; a line on standard output says that it has ended. What the user's file prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import sys
import traceback
from types import ModuleType
from typing import Any

import msgspec
import torch

from ..events.errors import BadInput
from . import function_source, module_source
from .exact import quick
from .gauging import drawn_by, fit_output, handed_back, measured, of_those
from .limits import stated
from .loaded import loaded, told
from .module_source import ModuleCall
from .probing import Answer, Asked
from .scaling import scaled

_LAST_DIGITS = 1e-9
"""Relative L2 difference of two float64 answers; a dropout of one element in 10^9 would show a larger one."""


def answer(asked: Asked) -> Answer:
    """What the importer needs to know of a file. BadInput where it cannot be made a problem of."""
    device = torch.device(asked.device)
    return _of_module(asked, device) if asked.form == "module" else _of_functions(asked, device)


# --- a module -----------------------------------------------------------------------------------------------------------


def _of_module(asked: Asked, device: torch.device) -> Answer:
    text, changed = scaled(asked.text, asked.budget, loaded)
    call = _call(loaded(text, "user"), device)
    found: Answer | None = None
    for quiet in ("nothing", "dropout", "all"):
        call = msgspec.structs.replace(call, eval=quiet, state=(), constant=())
        call = _with_state(text, call, device)
        reference = _reference(module_source.reference(text, call), f"reference_{quiet}")
        drawn = drawn_by(reference, device, 1)
        with told("calling the module"):
            fit_output(loaded(module_source.eager(text, call), f"eager_{quiet}").run(*drawn))
            first, second = reference.reference(*drawn), reference.reference(*drawn)
        if _alike(first, second):
            eager = loaded(module_source.eager(text, call), f"eager_{quiet}")
            if handed_back(drawn, first):
                call = msgspec.structs.replace(call, spread=True)
                reference = _reference(module_source.reference(text, call), "reference_spread")
            found = measured(reference, eager, device, text, {})
            break
    if found is None:
        raise BadInput("expected a module whose answer follows from its inputs, found another answer at a second call")
    call = msgspec.structs.replace(call, dtype=found.dtype)
    files = {"start.py": module_source.eager(text, call), "eager.py": module_source.eager(text, call)}
    files["reference.py"] = module_source.reference(text, call)
    notes = [f"{knob.name} {knob.value} -> {value}" for knob, value in changed.items()]
    notes += [] if call.eval == "nothing" else [f"eval mode: {call.eval}"]
    notes += ["inputs spread around 0: as drawn they came out as they went in"] if call.spread else []
    return msgspec.structs.replace(found, files=files, notes=tuple(notes))


def _reference(text: str, name: str) -> ModuleType:
    """A reference file as a module, whose answers come from whoever is faster in float64."""
    made = loaded(text, name)
    vars(made)["reference"] = quick(made.reference)
    return made


def _alike(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two answers in float64 are one: libraries add in another order from call to call, which shows in the last digits."""
    fine = torch.isfinite(first)
    # Infinities and no numbers stand where they stood: only what is finite has last digits.
    if not torch.equal(of_those(~fine, first).nan_to_num(), of_those(~fine, second).nan_to_num()):
        return False
    kept = of_those(fine, first).double()
    off = of_those(fine, second).double() - kept
    return bool(off.norm() <= _LAST_DIGITS * kept.norm())


def _call(module: ModuleType, device: torch.device) -> ModuleCall:
    with told("calling get_inputs()"), device:
        given = module.get_inputs()
    if not isinstance(given, (list, tuple)):
        raise BadInput(f"get_inputs(): expected a list, found {type(given).__name__}")
    fixed = {i: value for i, value in enumerate(given) if not isinstance(value, torch.Tensor)}
    for position, value in fixed.items():
        if not isinstance(value, (int, float, bool, str, type(None))):
            raise BadInput(
                f"get_inputs(): expected tensors and plain numbers, found {type(value).__name__} at {position}; "
                "pass its tensors one by one"
            )
    if len(fixed) == len(given):
        raise BadInput("get_inputs(): expected at least one tensor, found none")
    return ModuleCall(tensors=len(given) - len(fixed), fixed=fixed)


def _with_state(text: str, call: ModuleCall, device: torch.device) -> ModuleCall:
    """Parameters, and the statistics that norms keep where they are used; what else a module holds, it builds itself."""
    with told("building Model(*get_init_inputs())"):
        model = loaded(module_source.eager(text, call), "built")._ready(device)
    if not isinstance(model, torch.nn.Module):
        raise BadInput(f"Model: expected a torch.nn.Module, found {type(model).__name__}")
    named = {name: value for name, value in model.named_parameters() if value.is_floating_point()}
    for path, part in model.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._NormBase):
            own = dict(part.named_buffers(recurse=False))
            named |= {f"{path}.{name}".lstrip("."): v for name, v in own.items() if v.is_floating_point()}
    named = {name: value for name, value in named.items() if value.numel()}
    odd = sorted({str(value.dtype) for value in named.values()} - {"torch.float32"})
    if odd:
        raise BadInput(f"Model: expected parameters in float32, found {', '.join(odd)}")
    constant = tuple(name for name, value in named.items() if bool((value == value.flatten()[0]).all()))
    return msgspec.structs.replace(call, state=tuple(named), constant=constant)


# --- functions ----------------------------------------------------------------------------------------------------------


def _of_functions(asked: Asked, device: torch.device) -> Answer:
    own = loaded(asked.text, "user")
    given = getattr(own, "LIMITS", None)
    limits_given = {} if given is None else stated(given)
    start = loaded(function_source.start(asked.text), "start")
    eager = loaded(function_source.eager(asked.text), "eager")
    reference = _reference(function_source.reference(asked.text, "float32"), "reference")
    with told("calling inputs(generator, device)"):
        drawn_by(reference, device, 1)
    found = measured(reference, eager, device, asked.text, limits_given)
    with told("calling run(*inputs)"):
        out = start.run(*drawn_by(reference, device, 1))
    if not isinstance(out, torch.Tensor) or list(out.shape) != list(found.output):
        what = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise BadInput(
            f"run(*inputs): expected a tensor of the shape {list(found.output)} of reference's, found {what}"
        )
    files = {"start.py": function_source.start(asked.text), "eager.py": function_source.eager(asked.text)}
    files["reference.py"] = function_source.reference(asked.text, found.dtype)
    return msgspec.structs.replace(found, files=files)


def answer_file(asked_path: str, answer_path: str) -> None:
    """Answer one request: an Answer, or `{"refused": reason}`."""
    try:
        content: Any = answer(msgspec.json.decode(pathlib.Path(asked_path).read_bytes(), type=Asked))
    except BadInput as error:
        content = {"refused": str(error)}
    except torch.OutOfMemoryError as error:  # of a check: what the file's own calls raise is told where they are made
        content = {"refused": f"expected a call and its check in float64 to fit the device, found {str(error)[:300]}"}
    pathlib.Path(answer_path).write_bytes(msgspec.json.encode(content))


def main() -> None:
    """Fork for every line, one at a time."""
    with contextlib.suppress(Exception):  # a first call imports it, which takes seconds: once instead of for every file
        importlib.import_module("torch._dynamo")
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(2, 1)  # whatever a file writes, by whatever way
        while line := sys.stdin.readline():
            child = os.fork()
            if not child:
                told.close()  # what a file writes is no word of ours
                _child(*line.rstrip("\n").split("\t"))
            os.waitpid(child, 0)
            told.write("ended\n")
            told.flush()


def _child(asked_path: str, answer_path: str) -> None:
    """Never returns: an exception of ours goes to stderr, and there is no answer."""
    try:
        os.close(0)
        answer_file(asked_path, answer_path)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
