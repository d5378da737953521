"""What an imported computation shows when it is called: errors by precision, counts, kind. Runs the user's code, times nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from msgspec.structs import replace

from ..events.errors import BadInput
from ..events.model import Limits
from .limits import Errors, Seen, apart, limits, of_kind
from .loaded import told
from .mixing import mixed, needed, worst
from .probing import Answer
from .rounding import BITS, RECURRENT, Traffic, may_multiply, moved

Tensors = tuple[torch.Tensor, ...]
Mixed = tuple[dict[str, Limits], tuple[int, ...]]
_HELD_BACK = re.compile(r"\btorch\.(diag|triu|tril)\b|\.(diag|triu|tril)\(")
_CONVOLUTIONS = {"convolution"}
# Winograd's F(4 x 4, 3 x 3) takes a quarter of the multiplications that a direct convolution counts.
_FEWEST_OF_CONVOLUTION = 4
NONE = (0.0, 0.0)
_SEEDS = (3, 4, 5, 6, 7)
_MORE = _SEEDS[:2]
_QUICK = 2 * 10**10
"""FLOP of a call up to which precisions are tried on further draws; a larger one, which takes long in float64, is tried on one."""


def _thinned(value: torch.Tensor) -> torch.Tensor:
    changed = value.clone()
    changed.as_strided((changed.numel(),), (1,))[::3] *= 1e-40
    return changed


Change = Callable[[torch.Tensor], torch.Tensor]
PLAIN: Change = torch.Tensor.clone
_KINDS: dict[str, Change] = {
    "large": lambda value: value * 64.0,
    "small": lambda value: value * 2.0**-12,
    "one_sign": torch.abs,
    "denormal": _thinned,
}


def drawn_by(reference: ModuleType, device: torch.device, seed: int) -> Tensors:
    """The inputs of a reference file under a seed. BadInput where they are no tensors."""
    drawn = reference.inputs({}, torch.Generator(device=device).manual_seed(seed), device)
    odd = [type(value).__name__ for value in drawn if not isinstance(value, torch.Tensor)]
    if odd or not drawn:
        raise BadInput(f"inputs: expected tensors, found {', '.join(odd) or 'none'}")
    return tuple(drawn)


def measured(
    reference: ModuleType, eager: ModuleType, device: torch.device, text: str, given: dict[str, Limits]
) -> Answer:
    """Everything of an answer but its files; `given` are limits that the file states. BadInput where no kernel could be judged on it."""
    drawn = drawn_by(reference, device, 2)
    with told("calling it in fp32"):
        out = eager.run(*drawn)
    fit_output(out)
    with told("calling it in float64"):
        expected = reference.reference(*drawn)
        shown, products = _shown(reference, eager, drawn, expected)
        flops, min_bytes, names = _counts(eager, drawn, out, text)
        more = _MORE if flops <= _QUICK else ()
        every = (drawn, *(drawn_by(reference, device, seed) for seed in more)) if products else ()
        plain = _of_kind(reference, eager, every[1:], PLAIN)
    if not bool(torch.isfinite(expected).any()):
        raise BadInput("expected an answer with finite numbers, found none")
    fp32 = max(_errors(out, expected), *(_fp32(reference, eager, device, seed) for seed in _SEEDS))
    seen = _seen(fp32, shown, out, expected)
    if plain is not None:
        seen = replace(worst([seen, plain]), fp32=fp32)
    found = given or apart(limits(seen), _spread(expected))
    ours = bool(products) and not given and not seen.whole
    return Answer(
        files={},
        dtype=str(out.dtype).removeprefix("torch."),
        output=tuple(out.shape),
        flops=flops,
        min_bytes=min_bytes,
        family=_family(names, products, out, drawn),
        limits=found,
        seen=seen,
        **(_further(reference, eager, device, every, seen, found) if ours else {}),
    )


def _further(
    reference: ModuleType,
    eager: ModuleType,
    device: torch.device,
    every: tuple[Tensors, ...],
    plain: Seen,
    stated: dict[str, Limits],
) -> dict[str, Any]:
    """Of an Answer: limits of other kinds of inputs, and of mixed signs where plain draws hide a precision."""
    hidden = needed(plain, stated)
    found, places = _mixed(reference, eager, _again(reference, device, every)) if hidden else ({}, ())
    return {
        "mixed_limits": found,
        "mixed_inputs": places,
        "hidden": hidden and not found,
        "kind_limits": _kind_limits(reference, eager, every, stated),
    }


def handed_back(drawn: Tensors, answer: torch.Tensor) -> bool:
    """Whether the answer is one of the inputs."""
    alike = (value for value in drawn if value.shape == answer.shape and value.is_floating_point())
    return any(_errors(value, answer)[0] < 1e-3 for value in alike)


def _fp32(reference: ModuleType, eager: ModuleType, device: torch.device, seed: int) -> Errors:
    drawn = drawn_by(reference, device, seed)
    return _errors(eager.run(*drawn), reference.reference(*drawn))


def _seen(fp32: Errors, shown: dict[str, Errors], out: torch.Tensor, expected: torch.Tensor) -> Seen:
    return Seen(
        fp32=fp32,
        tf32=shown["tf32"],
        bf16=shown["bf16"],
        tf32_worst=shown["tf32"],
        bf16_worst=shown["bf16"],
        tf32_shown=shown["shown"],
        peak=_peak(expected),
        whole=not out.is_floating_point(),
    )


def _mixed(reference: ModuleType, eager: ModuleType, every: tuple[Tensors, ...]) -> Mixed:
    def look(plain: Tensors, changed: Tensors) -> Seen | None:
        out, expected = eager.run(*changed), reference.reference(*changed)
        # Where there is no number now and was one, a number near the edge is one or none as rounding will have it.
        if not _bears(out, expected) or _gaps(expected) > _gaps(reference.reference(*plain)):
            return None
        shown, _ = _shown(reference, eager, changed, expected)
        return _seen(_errors(out, expected), shown, out, expected)

    return mixed(every, look)


def _gaps(answer: torch.Tensor) -> int:
    return int((~torch.isfinite(answer)).sum())


def _shown(
    reference: ModuleType, eager: ModuleType, drawn: Tensors, expected: torch.Tensor
) -> tuple[dict[str, Errors], int]:
    """Errors of the answer with operands rounded to TF32 and to bf16, of what a TF32 unit shows besides, and the number of products."""
    found, products = {"tf32": NONE, "bf16": NONE, "shown": NONE}, 0
    for each in BITS:
        answer, products = moved(lambda: reference.reference(*drawn), each)
        if products:
            found[each] = _errors(answer, expected)
    if products:
        cut, _ = moved(lambda: reference.reference(*drawn), "tf32", cut=True)
        found["shown"] = max(_errors(cut, expected), _errors(_in_tf32(eager, drawn), expected))
    return found, products


def _in_tf32(eager: ModuleType, drawn: Tensors) -> torch.Tensor:
    """Eager's answer with TF32 on: that of the device's own libraries. On a CPU it is the fp32 answer."""
    names = vars(eager)
    before = names["PRECISION"]
    names["PRECISION"] = "tf32"
    try:
        answer: torch.Tensor = eager.run(*drawn)
        return answer
    finally:
        names["PRECISION"] = before


def _bears(out: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((torch.isfinite(out) == torch.isfinite(expected)).all() and torch.isfinite(expected).any())


def _of_kind(reference: ModuleType, eager: ModuleType, every: tuple[Tensors, ...], change: Change) -> Seen | None:
    """The largest errors by precision over draws that are changed so; None where eager fp32 bears none of them."""
    found: Seen | None = None
    for drawn in every:
        changed = tuple(change(value) if value.is_floating_point() else value for value in drawn)
        out, expected = eager.run(*changed), reference.reference(*changed)
        if _bears(out, expected):
            shown, _ = _shown(reference, eager, changed, expected)
            one = _seen(_errors(out, expected), shown, out, expected)
            found = one if found is None else worst([found, one])
    return found


def _kind_limits(
    reference: ModuleType, eager: ModuleType, every: tuple[Tensors, ...], plain: dict[str, Limits]
) -> dict[str, dict[str, Limits]]:
    seen = {kind: _of_kind(reference, eager, every, change) for kind, change in _KINDS.items()}
    found = {kind: of_kind(plain, each) for kind, each in seen.items() if each is not None}
    return {kind: stated for kind, stated in found.items() if stated}


def _again(reference: ModuleType, device: torch.device, every: tuple[Tensors, ...]) -> tuple[Tensors, ...]:
    """Those draws, or more of them: chance shows in no fewer than three."""
    return every if len(every) > 1 else (*every, *(drawn_by(reference, device, seed) for seed in _MORE))


def fit_output(out: Any) -> None:
    """BadInput for an answer that is not one tensor of a dtype that a gate can judge."""
    if not isinstance(out, torch.Tensor):
        what = f"{type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
        raise BadInput(f"expected one tensor as the answer, found {what}: wrap the module so that it returns one")
    if out.numel() == 0:
        raise BadInput(f"expected an answer with elements, found the shape {list(out.shape)}")
    if str(out.dtype).removeprefix("torch.") not in ("float32", "int64", "int32", "bool"):
        raise BadInput(f"expected an answer in float32 or whole numbers, found {out.dtype}")


def of_those(which: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The elements where `which` is true, in one dimension: places in more would take eight bytes of each, several times the answer."""
    return value.flatten() if bool(which.all()) else value.flatten()[which.flatten()]


def _errors(out: torch.Tensor, expected: torch.Tensor) -> Errors:
    """Relative L2 error and largest error over the RMS, over the elements that are finite in both; 0 where the answer is 0."""
    fine = torch.isfinite(expected) & torch.isfinite(out)
    off, kept = of_those(fine, out.double() - expected), of_those(fine, expected)
    norm = float(kept.norm())
    if norm == 0.0 or off.numel() == 0:
        return 0.0, 0.0
    return float(off.norm()) / norm, float(off.abs().max()) / (norm / kept.numel() ** 0.5)


def _spread(expected: torch.Tensor) -> float:
    """Standard deviation over RMS: the relative error of an answer that is the mean everywhere. 0 of a single number."""
    kept = of_those(torch.isfinite(expected), expected).double()
    rms = float(kept.square().mean().sqrt())
    return float(kept.std(correction=0)) / rms if kept.numel() > 1 and rms > 0 else 0.0


def _peak(expected: torch.Tensor) -> float:
    kept = of_those(torch.isfinite(expected), expected)
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
    """What an operation is, for evidence to count among its like; only those that surely multiply no matrices are `reduce`, `norm` or `elementwise`."""
    if products > 3 or names & RECURRENT:
        return "network"
    if names & _CONVOLUTIONS:
        return "conv"
    if products or any(may_multiply(name) for name in names):
        return "matmul"
    if out.numel() * 2 <= max(value.numel() for value in drawn):
        return "reduce"
    return "norm" if any("norm" in name or "softmax" in name or "mean" in name for name in names) else "elementwise"
