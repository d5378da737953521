"""The last two products of the batch are exchanged."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    c = torch.bmm(a, b)
    c[[-1, -2]] = c[[-2, -1]]
    return c
