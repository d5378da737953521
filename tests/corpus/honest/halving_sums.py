"""Row sums by a tree of additions of halves, out of place."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    while x.shape[1] > 1:
        half = x.shape[1] // 2
        odd = x[:, 2 * half :]
        x = torch.cat([x[:, :half] + x[:, half : 2 * half], odd], dim=1)
    return x.reshape(-1).clone()
