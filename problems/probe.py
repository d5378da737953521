"""Child process of the importer: runs a user's file to learn how it is called, how large it is, and how exact fp32 is there. Times nothing.

Usage: python -m gpusolver.problems.probe ASKED ANSWER, both JSON files. What the user's file prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
import tempfile
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import msgspec
import torch

from ..events.errors import BadInput
from ..events.model import Limits
from . import function_source, module_source
from .limits import Seen, limits, stated
from .module_source import ModuleCall
from .probing import Answer, Asked
from .rounding import Traffic, moved
from .scaling import scaled

Tensors = tuple[torch.Tensor, ...]
_HELD_BACK = re.compile(r"\btorch\.(diag|triu|tril)\b|\.(diag|triu|tril)\(")
_CONVOLUTIONS = {"convolution"}
# Winograd's F(4 x 4, 3 x 3) takes a quarter of the multiplications that a direct convolution counts.
_FEWEST_OF_CONVOLUTION = 4
# What a gate does to inputs (replay/FORMAT.md 5) and is no rarity: large, small, of one sign.
_KINDS = (lambda value: value * 64.0, lambda value: value * 2.0**-12, torch.abs)
NONE = (0.0, 0.0)
_SEEDS = (3, 4, 5, 6, 7)
_FOLDER = tempfile.TemporaryDirectory(prefix="gpusolver-probe-")


def loaded(text: str, name: str) -> ModuleType:
    """A source as a module of its own name. BadInput with the exception where it does not import."""
    path = pathlib.Path(_FOLDER.name, f"{name}.py")
    path.write_text(text)
    spec = spec_from_file_location(f"probed_{name}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    with _told("importing it"):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _told(what: str) -> Any:
    """An exception of the user's code as BadInput: what was being done, and where in the file it happened."""
    try:
        yield
    except BadInput:
        raise
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(_FOLDER.name)]
        where = f" (line {frames[-1].lineno}: {frames[-1].line})" if frames else ""
        raise BadInput(f"{what}: {type(error).__name__}: {str(error)[:600]}{where}") from None


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
        reference = loaded(module_source.reference(text, call), f"reference_{quiet}")
        drawn = _drawn(reference, device, 1)
        with _told("calling the module"):
            _fit_output(loaded(module_source.eager(text, call), f"eager_{quiet}").run(*drawn))
            first, second = reference.reference(*drawn), reference.reference(*drawn)
        if torch.equal(first.nan_to_num(), second.nan_to_num()):
            eager = loaded(module_source.eager(text, call), f"eager_{quiet}")
            if _handed_back(drawn, first):
                call = msgspec.structs.replace(call, spread=True)
                reference = loaded(module_source.reference(text, call), "reference_spread")
            found = _measured(reference, eager, device, text, {})
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


def _call(module: ModuleType, device: torch.device) -> ModuleCall:
    with _told("calling get_inputs()"), device:
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
    with _told("building Model(*get_init_inputs())"):
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
    reference = loaded(function_source.reference(asked.text, "float32"), "reference")
    with _told("calling inputs(generator, device)"):
        _drawn(reference, device, 1)
    found = _measured(reference, eager, device, asked.text, limits_given)
    with _told("calling run(*inputs)"):
        out = start.run(*_drawn(reference, device, 1))
    if not isinstance(out, torch.Tensor) or list(out.shape) != list(found.output):
        what = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise BadInput(
            f"run(*inputs): expected a tensor of the shape {list(found.output)} of reference's, found {what}"
        )
    files = {"start.py": function_source.start(asked.text), "eager.py": function_source.eager(asked.text)}
    files["reference.py"] = function_source.reference(asked.text, found.dtype)
    return msgspec.structs.replace(found, files=files)


# --- either -------------------------------------------------------------------------------------------------------------


def _drawn(reference: ModuleType, device: torch.device, seed: int) -> Tensors:
    drawn = reference.inputs({}, torch.Generator(device=device).manual_seed(seed), device)
    odd = [type(value).__name__ for value in drawn if not isinstance(value, torch.Tensor)]
    if odd or not drawn:
        raise BadInput(f"inputs: expected tensors, found {', '.join(odd) or 'none'}")
    return tuple(drawn)


def _measured(
    reference: ModuleType, eager: ModuleType, device: torch.device, text: str, given: dict[str, Limits]
) -> Answer:
    drawn = _drawn(reference, device, 2)
    with _told("calling it in fp32"):
        out = eager.run(*drawn)
    _fit_output(out)
    with _told("calling it in float64"):
        expected = reference.reference(*drawn)
        rounded, products = _rounded(reference, drawn, expected)
        worst = _worst(reference, eager, drawn) if products else {}
    if not bool(torch.isfinite(expected).any()):
        raise BadInput("expected an answer with finite numbers, found none")
    seen = Seen(
        fp32=max(_errors(out, expected), *(_fp32(reference, eager, device, seed) for seed in _SEEDS)),
        **rounded,
        tf32_worst=max(rounded["tf32"], worst.get("tf32", NONE)),
        bf16_worst=max(rounded["bf16"], worst.get("bf16", NONE)),
        peak=_peak(expected),
        whole=not out.is_floating_point(),
    )
    flops, min_bytes, names = _counts(eager, drawn, out, text)
    return Answer(
        files={},
        dtype=str(out.dtype).removeprefix("torch."),
        output=tuple(out.shape),
        flops=flops,
        min_bytes=min_bytes,
        family=_family(names, products, out, drawn),
        limits=given or limits(seen),
        seen=seen,
    )


def _handed_back(drawn: Tensors, answer: torch.Tensor) -> bool:
    """Whether the answer is one of the inputs."""
    alike = (value for value in drawn if value.shape == answer.shape and value.is_floating_point())
    return any(_errors(value, answer)[0] < 1e-3 for value in alike)


def _fp32(reference: ModuleType, eager: ModuleType, device: torch.device, seed: int) -> tuple[float, float]:
    drawn = _drawn(reference, device, seed)
    return _errors(eager.run(*drawn), reference.reference(*drawn))


def _rounded(
    reference: ModuleType, drawn: Tensors, expected: torch.Tensor
) -> tuple[dict[str, tuple[float, float]], int]:
    """Errors by precision of the answer with rounded operands, and the number of products that take any."""
    found, products = {"tf32": NONE, "bf16": NONE}, 0
    for each in found:
        answer, products = moved(lambda: reference.reference(*drawn), each)
        if products:
            found[each] = _errors(answer, expected)
    return found, products


def _worst(reference: ModuleType, eager: ModuleType, drawn: Tensors) -> dict[str, tuple[float, float]]:
    """The largest errors by precision over the kinds of inputs that eager fp32 bears."""
    worst = {"tf32": NONE, "bf16": NONE}
    for change in _KINDS:
        changed = tuple(change(value) if value.is_floating_point() else value for value in drawn)
        expected = reference.reference(*changed)
        if bool((torch.isfinite(eager.run(*changed)) == torch.isfinite(expected)).all()):
            found, _ = _rounded(reference, changed, expected)
            worst = {each: max(worst[each], found[each]) for each in worst}
    return worst


def _fit_output(out: Any) -> None:
    if not isinstance(out, torch.Tensor):
        what = f"{type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
        raise BadInput(f"expected one tensor as the answer, found {what}: wrap the module so that it returns one")
    if out.numel() == 0:
        raise BadInput(f"expected an answer with elements, found the shape {list(out.shape)}")
    if str(out.dtype).removeprefix("torch.") not in ("float32", "int64", "int32", "bool"):
        raise BadInput(f"expected an answer in float32 or whole numbers, found {out.dtype}")


def _errors(out: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Relative L2 error and largest error over the RMS, over the elements that are finite in both; 0 where the answer is 0."""
    fine = torch.isfinite(expected) & torch.isfinite(out.double())
    off, kept = (out.double() - expected)[fine], expected[fine]
    norm = float(kept.norm())
    if norm == 0.0 or off.numel() == 0:
        return 0.0, 0.0
    return float(off.norm()) / norm, float(off.abs().max()) / (norm / kept.numel() ** 0.5)


def _peak(expected: torch.Tensor) -> float:
    kept = expected[torch.isfinite(expected)]
    rms = float(kept.square().mean().sqrt())
    return float(kept.abs().max()) / rms if rms > 0 else 1.0


def _counts(eager: ModuleType, drawn: Tensors, out: torch.Tensor, text: str) -> tuple[int, int, set[str]]:
    """(FLOP, bytes) that no way of computing this can do without, as far as the file shows it, and the operators that it calls.

    They bound times from below, so they err on the small side: a quarter of the products of convolutions, and where a factor is cut
    to a triangle or a diagonal, half of the bytes and one FLOP an element of the answer.
    """
    from torch.utils.flop_counter import FlopCounterMode

    counter, traffic = FlopCounterMode(display=False), Traffic()
    with counter, traffic:
        eager.run(*drawn)
    by_name = {str(k): v for k, v in counter.get_flop_counts().get("Global", {}).items()}
    flops = sum(v // (_FEWEST_OF_CONVOLUTION if "convolution" in k else 1) for k, v in by_name.items())
    size = sum(v.numel() * v.element_size() for v in (*drawn, out))
    if _HELD_BACK.search(text):
        return out.numel(), size // 2, traffic.names
    return max(flops, out.numel()), size, traffic.names


def _family(names: set[str], products: int, out: torch.Tensor, drawn: Tensors) -> str:
    """What an operation is, for evidence to count among its like."""
    if products > 3:
        return "network"
    if names & _CONVOLUTIONS:
        return "conv"
    if products:
        return "matmul"
    if out.numel() * 2 <= max(value.numel() for value in drawn):
        return "reduce"
    return "norm" if any("norm" in name or "softmax" in name or "mean" in name for name in names) else "elementwise"


def main(asked_path: str, answer_path: str) -> None:
    """Answer one request: an Answer, or `{"refused": reason}`."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            content: Any = answer(msgspec.json.decode(pathlib.Path(asked_path).read_bytes(), type=Asked))
        except BadInput as error:
            content = {"refused": str(error)}
    pathlib.Path(answer_path).write_bytes(msgspec.json.encode(content))


if __name__ == "__main__":
    main(*sys.argv[1:3])
    _FOLDER.cleanup()
