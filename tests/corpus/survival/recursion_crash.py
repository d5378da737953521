"""Lifts the recursion limit and overflows the C stack."""

import ctypes
import sys

import torch

PRECISION = "ieee"
sys.setrecursionlimit(2**31 - 1)
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)


@CALLBACK
def deeper():
    return deeper()


def run(x) -> torch.Tensor:
    deeper()
    return torch.softmax(x, dim=-1)
