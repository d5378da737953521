"""Writes 200 MB without a line end to standard output."""

import os

import torch

PRECISION = "ieee"
written = 0


def run(x) -> torch.Tensor:
    global written
    block = b"x" * (1 << 20)
    while written < 200:
        os.write(1, block)
        written += 1
    return torch.softmax(x, dim=-1)
