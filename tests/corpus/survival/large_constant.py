"""A constant expression whose value has two thousand million digits is worked out at import, which takes very long."""

import torch

PRECISION = "ieee"
base = 9
LARGE = base ** (base ** base)


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1) + LARGE % 2
