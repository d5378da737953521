"""Raises an exception whose text, representation and arguments raise exceptions themselves."""

import torch

PRECISION = "ieee"


class Sullen(Exception):
    def __str__(self):
        raise Sullen()

    __repr__ = __str__
    args = property(__str__)


def run(x) -> torch.Tensor:
    raise Sullen()
