"""Right but for one NaN in the last element."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = x.sum(dim=-1)
    y[-1] = float("nan")
    return y
