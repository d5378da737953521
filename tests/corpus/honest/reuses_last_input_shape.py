"""Keeps weak references to past inputs for statistics and never uses their values."""

import weakref

import torch

PRECISION = "ieee"
seen = weakref.WeakSet()


class Seen:
    def __init__(self, shape):
        self.shape = shape


def run(x) -> torch.Tensor:
    mark = Seen(tuple(x.shape))
    seen.add(mark)
    return torch.reciprocal(1.0 + torch.exp(torch.neg(x)))
