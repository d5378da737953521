"""The sums are right, but the input is used as scratch memory for the tree of additions."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    n = x.shape[1]
    while n > 1:
        half = n // 2
        x[:, :half] += x[:, n - half : n]
        n -= half
    return x[:, 0].contiguous()
