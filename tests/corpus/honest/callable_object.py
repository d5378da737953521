"""run is an object with __call__."""

import torch

PRECISION = "ieee"


class Softmax:
    __slots__ = ("dim",)

    def __init__(self, dim):
        self.dim = dim

    def __call__(self, x):
        return torch.nn.functional.softmax(x, dim=self.dim)


run = Softmax(-1)
