"""Sets sys.stdout and sys.stderr to None and the exception hook to one that raises."""

import sys

import torch

PRECISION = "ieee"


def hook(*args):
    raise RuntimeError("hook")


def run(x) -> torch.Tensor:
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
    sys.excepthook = hook
    raise ValueError("after the streams are gone")
