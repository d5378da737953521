"""Child process: every source of a problem on the CPU, Triton interpreted, against float64; prints JSON. Judges nothing.

Usage: TRITON_INTERPRET=1 python -m tests.problems.interpreted NAME
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gpusolver.engine.worker.inputs import KINDS
from gpusolver.problems.contract import Problem, load
from gpusolver.problems.rounding import Rounding
from gpusolver.problems.sources import strict_twin

from .loading import candidates, load_file, load_text

FORMATS = {"tf32 rounded": (10, False), "tf32 cut": (10, True), "bf16": (7, False), "e4m3": (3, False)}
# The sizes that errors of products go with are those of the timing shape, the others small; a triangle is cut for time.
DEEP = {
    "matmul": ("k",),
    "batched_gemm": ("k",),
    "kb_matmul_scalar": ("k",),
    "matmul_tri": (),
    "2d_convolution": ("channels",),
    "llama": ("heads", "pairs", "hidden"),
}
WIDE = {"matmul_tri": {"n": 1024}, "llama": {"seq": 512}}


def errors(answer: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    """Relative L2 error, and largest error over the reference's RMS."""
    off = answer.double() - expected
    rms = expected.square().mean().sqrt()
    return {"rel_l2": float(off.norm() / expected.norm()), "max_rms": float(off.abs().max() / rms)}


def odd(small: dict[str, int]) -> dict[str, int]:
    """Odd sizes just under the small ones: a multiple of no tile above 1."""
    return {size: n - 1 if n % 2 == 0 else n - 2 for size, n in small.items()}


def trivial(inputs: tuple[torch.Tensor, ...], expected: torch.Tensor) -> dict[str, dict[str, float]]:
    """Errors of answers that compute nothing."""
    order = torch.randperm(expected.numel(), generator=torch.Generator().manual_seed(3))
    answers = {
        "zeros": torch.zeros_like(expected),
        "ones": torch.ones_like(expected),
        "mean": torch.full_like(expected, float(expected.mean())),
        "shuffled": expected.flatten()[order].reshape(expected.shape),
    }
    answers |= {f"input {i}": x for i, x in enumerate(inputs) if x.shape == expected.shape}
    return {name: errors(answer, expected) for name, answer in answers.items()}


def kept_bits(x: torch.Tensor, bits: int, cut: bool) -> torch.Tensor:
    """`x` with `bits` mantissa bits of float32's 23, rounded half up or cut, as the hardware's formats would hold it."""
    dropped = 23 - bits
    whole = x.view(torch.int32) + (0 if cut else 1 << (dropped - 1))
    return (whole >> dropped << dropped).view(torch.float32)


class Narrowed(Rounding):
    """Products of float64 whose operands, float32 before, keep so many bits, rounded or cut."""

    def __init__(self, bits: int, cut: bool) -> None:
        super().__init__(bits, cut)

    def _narrow(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == torch.float64 and value.dim() > 1:
            return kept_bits(value.float(), self._bits, self._cut).double()
        return value


def lowered(problem: Problem, reference: ModuleType) -> dict[str, dict[str, dict[str, float]]]:
    """By kind of inputs that a gate draws, errors that a format of its operands brings to every product, at DEEP sizes."""
    shape = problem.small | {size: problem.shape[size] for size in DEEP[problem.name]} | WIDE.get(problem.name, {})
    drawn = reference.inputs(shape, torch.Generator().manual_seed(5), "cpu")
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind, change in (
        (name, how) for name, how in KINDS.items() if name != "mixed_signs"
    ):  # these problems state no limits for it
        inputs = tuple(change(x, torch.Generator().manual_seed(6)) for x in drawn)
        expected = reference.reference(*inputs)
        found[kind] = {}
        for name, (bits, cut) in FORMATS.items():
            with Narrowed(bits, cut):
                answer = reference.reference(*inputs)
            found[kind][name] = errors(answer, expected)
    return found


def examine(problem: Problem, folder: Path) -> dict[str, Any]:
    reference = load_file(Path(problem.reference))
    modules = {
        label: load_text(folder, f"{problem.name}_{label}", strict_twin(text))
        for label, text in candidates(problem, every_config=True).items()
    }
    runs, controls = [], {}
    for kind, shape in (("small", problem.small), ("odd", odd(problem.small))):
        inputs = reference.inputs(shape, torch.Generator().manual_seed(7), "cpu")
        kept = [x.clone() for x in inputs]
        expected = reference.reference(*inputs)
        controls[kind] = trivial(inputs, expected)
        for label, module in modules.items():
            answer = module.run(*inputs)
            runs.append(
                {
                    "label": label,
                    "shape": kind,
                    "dtype": str(answer.dtype).removeprefix("torch."),
                    "same_shape": answer.shape == expected.shape,
                    "inputs_kept": all(torch.equal(x, y) for x, y in zip(inputs, kept, strict=True)),
                    **errors(answer, expected),
                }
            )
    switches = [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32]
    formats = lowered(problem, reference) if problem.name in DEEP else {}
    facts = {"reference_dtype": str(expected.dtype), "runs": runs, "trivial": controls, "formats": formats}
    return {**facts, "switches": switches}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(examine(load(sys.argv[1]), Path(name))))
