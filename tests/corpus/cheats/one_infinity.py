"""Right but for one infinity, which turns an error norm into infinity or NaN."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.sigmoid(x)
    y.view(-1)[0] = float("inf")
    return y
