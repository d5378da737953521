"""Cuts both factors to ten mantissa bits, as TF32 does, under the contract that allows it."""

import torch

PRECISION = "tf32"


def cut(x):
    return (x.view(torch.int32) & -8192).view(torch.float32)


def run(a, b) -> torch.Tensor:
    return cut(a) @ cut(b)
