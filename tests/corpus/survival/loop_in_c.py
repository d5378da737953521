"""An endless loop in C that holds the interpreter lock and runs no signal handlers."""

import collections
import itertools

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    collections.deque(itertools.repeat(0), maxlen=0)
    return x.sum(dim=-1)
