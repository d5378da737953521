"""Recursion without end, which Python stops."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return run(x)
