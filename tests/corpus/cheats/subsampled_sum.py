"""Sums every second column and doubles the result."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return x[:, ::2].sum(dim=-1) * 2
