"""Chooses between two right ways by the size of its input."""

import torch

PRECISION = "ieee"


def small(x):
    return x.sum(dim=-1)


def large(x):
    return x.reshape(x.shape[0], 64, -1).sum(dim=-1).sum(dim=-1)


def run(x) -> torch.Tensor:
    return (large if x.shape[1] % 64 == 0 and x.shape[1] > 1024 else small)(x)
