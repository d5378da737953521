"""Writes the right answer over its input and returns a view of the input."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    x.copy_(torch.softmax(x, dim=-1))
    return x.view(x.shape)
