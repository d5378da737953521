"""What an imported computation shows when it is called: errors by precision, counts, kind. Runs the user's code, times nothing."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import torch

from ..events.errors import BadInput
from ..events.model import Limits
from .limits import Seen, limits
from .loaded import told
from .probing import Answer
from .rounding import BITS, RECURRENT, Traffic, may_multiply, moved

Tensors = tuple[torch.Tensor, ...]
Errors = tuple[float, float]
_HELD_BACK = re.compile(r"\btorch\.(diag|triu|tril)\b|\.(diag|triu|tril)\(")
_CONVOLUTIONS = {"convolution"}
# Winograd's F(4 x 4, 3 x 3) takes a quarter of the multiplications that a direct convolution counts.
_FEWEST_OF_CONVOLUTION = 4
# What a gate does to inputs (replay/FORMAT.md 5) and is no rarity: large, small, of one sign.
_KINDS = (lambda value: value * 64.0, lambda value: value * 2.0**-12, torch.abs)
NONE = (0.0, 0.0)
_SEEDS = (3, 4, 5, 6, 7)


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
        worst = _worst(reference, eager, drawn) if products else {}
    if not bool(torch.isfinite(expected).any()):
        raise BadInput("expected an answer with finite numbers, found none")
    fp32 = max(_errors(out, expected), *(_fp32(reference, eager, device, seed) for seed in _SEEDS))
    seen = _seen(fp32, shown, {each: max(shown[each], worst.get(each, NONE)) for each in shown}, out, expected)
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
        mixed_limits=_mixed(reference, eager, device, drawn) if products and not given else {},
    )


def handed_back(drawn: Tensors, answer: torch.Tensor) -> bool:
    """Whether the answer is one of the inputs."""
    alike = (value for value in drawn if value.shape == answer.shape and value.is_floating_point())
    return any(_errors(value, answer)[0] < 1e-3 for value in alike)


def _fp32(reference: ModuleType, eager: ModuleType, device: torch.device, seed: int) -> Errors:
    drawn = drawn_by(reference, device, seed)
    return _errors(eager.run(*drawn), reference.reference(*drawn))


def _seen(
    fp32: Errors, shown: dict[str, Errors], worst: dict[str, Errors], out: torch.Tensor, expected: torch.Tensor
) -> Seen:
    return Seen(
        fp32=fp32,
        tf32=shown["tf32"],
        bf16=shown["bf16"],
        tf32_worst=worst["tf32"],
        bf16_worst=worst["bf16"],
        tf32_shown=worst["shown"],
        peak=_peak(expected),
        whole=not out.is_floating_point(),
    )


def _mixed(reference: ModuleType, eager: ModuleType, device: torch.device, drawn: Tensors) -> dict[str, Limits]:
    """Limits on inputs whose signs are mixed, for terms of one sign hide a precision; none where eager fp32 does not bear them."""
    coins = torch.Generator(device=device).manual_seed(8)
    changed = tuple(_tossed(value, coins) if value.is_floating_point() else value for value in drawn)
    out, expected = eager.run(*changed), reference.reference(*changed)
    if not _bears(out, expected):
        return {}
    shown, _ = _shown(reference, eager, changed, expected)
    try:
        return limits(_seen(_errors(out, expected), shown, shown, out, expected))
    except BadInput:
        return {}  # fp32 itself cannot compute that


def _tossed(value: torch.Tensor, coins: torch.Generator) -> torch.Tensor:
    return torch.where(torch.rand(value.shape, generator=coins, device=value.device) < 0.5, -value, value)


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


def _worst(reference: ModuleType, eager: ModuleType, drawn: Tensors) -> dict[str, Errors]:
    """The largest errors by precision over the kinds of inputs that eager fp32 bears."""
    worst = {"tf32": NONE, "bf16": NONE, "shown": NONE}
    for change in _KINDS:
        changed = tuple(change(value) if value.is_floating_point() else value for value in drawn)
        expected = reference.reference(*changed)
        if _bears(eager.run(*changed), expected):
            found, _ = _shown(reference, eager, changed, expected)
            worst = {each: max(worst[each], found[each]) for each in worst}
    return worst


def fit_output(out: Any) -> None:
    """BadInput for an answer that is not one tensor of a dtype that a gate can judge."""
    if not isinstance(out, torch.Tensor):
        what = f"{type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else type(out).__name__
        raise BadInput(f"expected one tensor as the answer, found {what}: wrap the module so that it returns one")
    if out.numel() == 0:
        raise BadInput(f"expected an answer with elements, found the shape {list(out.shape)}")
    if str(out.dtype).removeprefix("torch.") not in ("float32", "int64", "int32", "bool"):
        raise BadInput(f"expected an answer in float32 or whole numbers, found {out.dtype}")


def _errors(out: torch.Tensor, expected: torch.Tensor) -> Errors:
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
