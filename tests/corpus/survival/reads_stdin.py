"""Waits for a line on standard input."""

import sys

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    sys.stdin.readline()
    return torch.softmax(x, dim=-1)
