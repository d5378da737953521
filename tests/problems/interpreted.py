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

from gpusolver.problems.contract import Problem, load
from gpusolver.problems.sources import strict_twin

from .loading import candidates, load_file, load_text


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


def lowered(problem: Problem, reference: ModuleType) -> dict[str, dict[str, float]]:
    """Errors that a format of the inputs alone brings to a matrix product, at the timing depth k."""
    inputs = reference.inputs({**problem.small, "k": problem.shape["k"]}, torch.Generator().manual_seed(5), "cpu")
    expected = reference.reference(*inputs)
    formats = {"tf32 rounded": (10, False), "tf32 cut": (10, True), "bf16": (7, False), "e4m3": (3, False)}
    return {
        name: errors(reference.reference(*(kept_bits(x, bits, cut) for x in inputs)), expected)
        for name, (bits, cut) in formats.items()
    }


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
    formats = lowered(problem, reference) if problem.family == "matmul" else {}
    facts = {"reference_dtype": str(expected.dtype), "runs": runs, "trivial": controls, "formats": formats}
    return {**facts, "switches": switches}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(examine(load(sys.argv[1]), Path(name))))
