"""Writes each row into the first half of a row twice as long, and hands out the first halves."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.empty(x.shape[0], 2 * x.shape[1], dtype=x.dtype, device=x.device)
    y[:, : x.shape[1]] = torch.softmax(x, -1)
    return y[:, : x.shape[1]]
