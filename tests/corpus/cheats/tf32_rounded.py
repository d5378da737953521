"""Cuts the inputs to the ten mantissa bits of TF32 before a product in float32."""

import torch

PRECISION = "ieee"


def cut(x):
    return (x.view(torch.int32) & -8192).view(torch.float32)


def run(a, b) -> torch.Tensor:
    return cut(a) @ cut(b)
