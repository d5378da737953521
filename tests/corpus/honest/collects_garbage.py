"""Runs the garbage collector in the call and holds a count of calls."""

import gc

import torch

PRECISION = "ieee"
calls = 0


def run(x) -> torch.Tensor:
    global calls
    calls += 1
    y = torch.einsum("mn->m", x)
    if calls % 4 == 0:
        gc.collect()
    return y
