"""Raises a class of its own that derives from BaseException alone."""

import torch

PRECISION = "ieee"


class Quiet(BaseException):
    pass


def run(x) -> torch.Tensor:
    raise Quiet("not an Exception")
