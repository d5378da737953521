"""A loop over chunks of rows that writes each chunk into its place."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    for first in range(0, x.shape[0], 500):
        y[first : first + 500] = torch.softmax(x[first : first + 500], dim=-1)
    return y
