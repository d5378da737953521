"""Row sums in float64, rounded to float32 at the end: better than asked."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return x.sum(dim=-1, dtype=torch.float64).to(torch.float32)
