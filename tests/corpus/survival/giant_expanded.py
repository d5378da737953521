"""Returns one element expanded to 2**40, which nobody can make contiguous."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.zeros(1, device=x.device).expand(1 << 20, 1 << 20)
