"""Right sums with a trailing dimension of one, which broadcasts against the answer."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return x.sum(dim=-1, keepdim=True)
