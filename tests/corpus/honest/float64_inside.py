"""Computes in float64 and rounds once."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.sigmoid(x.to(torch.float64)).to(x.dtype)
