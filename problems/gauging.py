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
from .rounding import Traffic, moved

Tensors = tuple[torch.Tensor, ...]
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


def handed_back(drawn: Tensors, answer: torch.Tensor) -> bool:
    """Whether the answer is one of the inputs."""
    alike = (value for value in drawn if value.shape == answer.shape and value.is_floating_point())
    return any(_errors(value, answer)[0] < 1e-3 for value in alike)


def _fp32(reference: ModuleType, eager: ModuleType, device: torch.device, seed: int) -> tuple[float, float]:
    drawn = drawn_by(reference, device, seed)
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


def fit_output(out: Any) -> None:
    """BadInput for an answer that is not one tensor of a dtype that a gate can judge."""
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
