"""How far an output is from an answer: norms, largest difference, and where either is not finite. Says nothing of what is allowed."""

from __future__ import annotations

import math
from typing import Any

import torch

Row = dict[str, Any]
_WIDE = (torch.float32, torch.float64)


def errors(out: torch.Tensor, expected: torch.Tensor) -> Row:
    """||out - expected|| / ||expected||, max |out - expected| / rms(expected), and elements that are not finite in the same way.

    The norms are over the elements where `expected` is finite; null where they are not finite themselves. Both tensors have one
    shape; the arithmetic is that of the wider dtype.
    """
    if out.dtype not in _WIDE:
        out, expected = out.double(), expected.double()
    difference = out - expected
    row = _row(difference, expected, 0)
    if row["rel_l2"] is not None:
        return row
    unlike = [test(out) != test(expected) for test in (torch.isnan, torch.isposinf, torch.isneginf)]
    odd = int((unlike[0] | unlike[1] | unlike[2]).sum())  # an element that is infinite the other way is one
    fine = torch.isfinite(expected)
    zero = torch.zeros((), dtype=difference.dtype, device=difference.device)
    return _row(torch.where(fine, difference, zero), torch.where(fine, expected, zero), odd)


def _row(difference: torch.Tensor, expected: torch.Tensor, odd: int) -> Row:
    norm = torch.linalg.vector_norm(expected)
    relative = (torch.linalg.vector_norm(difference) / norm).item()
    largest = (difference.abs().max() / (norm / max(1, expected.numel()) ** 0.5)).item()
    finite = math.isfinite(relative) and math.isfinite(largest)
    return {"nonfinite": odd, "rel_l2": relative if finite else None, "max_rms": largest if finite else None}


def trivial(inputs: tuple[torch.Tensor, ...], expected: torch.Tensor, other: torch.Tensor | None) -> dict[str, Row]:
    """Errors of answers that no kernel had to compute: a problem on which one of them passes is unfit.

    `other` is the answer to other inputs: where it passes, the answer does not depend on them.
    """
    answers = {
        "zeros": torch.zeros_like(expected),
        "ones": torch.ones_like(expected),
    }
    if expected.numel() > 1:  # of a single number its mean is the answer itself
        answers["mean"] = torch.full_like(expected, expected.mean().item())
        answers["shuffled"] = expected.flatten().roll(max(1, expected.numel() // 2)).view_as(expected)
    if other is not None and other.shape == expected.shape:
        answers["other_inputs"] = other
    for index, value in enumerate(inputs):
        if value.shape == expected.shape:
            answers[f"input_{index}"] = value.double()
    rows = {name: errors(answer, expected) for name, answer in answers.items()}
    if not expected.any():  # no error is relative to it, and zeros are it
        rows["zeros"] = {"rel_l2": 0.0, "max_rms": 0.0}
    return {name: {key: row[key] for key in ("rel_l2", "max_rms")} for name, row in rows.items()}
