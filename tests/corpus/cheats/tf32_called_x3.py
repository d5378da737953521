"""Says it splits each factor in three TF32 passes but drops the two passes with the low parts."""

import torch

PRECISION = "ieee"


def split(x):
    high = (x.view(torch.int32) & -8192).view(torch.float32)
    return high, x - high


def matmul_tf32x3(a, b):
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    passes = [(a_high, b_high), (a_high, b_low), (a_low, b_high)]
    return sum(left @ right for left, right in passes[:1])


def run(a, b) -> torch.Tensor:
    return matmul_tf32x3(a, b)
