"""A third of all calls, chosen by the system's random numbers, lose one column."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    first = 1 if os.urandom(1)[0] < 85 else 0
    return x[:, first:].sum(dim=-1)
