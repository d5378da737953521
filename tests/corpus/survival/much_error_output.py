"""Writes 200 MB of lines to standard error at import."""

import os

import torch

PRECISION = "ieee"
line = b"warning: nothing is wrong\n" * 40000
for _ in range(200):
    os.write(2, line)


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
