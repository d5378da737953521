"""Defines softmax and solve, but no run."""

import torch

PRECISION = "ieee"


def softmax(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


solve = softmax
