"""Raises an exception with a text of 64 MB."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    raise RuntimeError("ab\u00e9\n" * (1 << 24))
