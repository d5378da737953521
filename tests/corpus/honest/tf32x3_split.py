"""Splits each factor into a high and a low TF32 part and adds three products, in short pieces of k: float32 accuracy."""

import torch

PRECISION = "ieee"


def split(x):
    high = (x.view(torch.int32) & -8192).view(torch.float32)
    return high, x - high


def run(a, b) -> torch.Tensor:
    c = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for left, right in zip(a.split(256, dim=1), b.split(256, dim=0)):
            (a_high, a_low), (b_high, b_low) = split(left.contiguous()), split(right)
            c += a_high @ b_high + (a_high @ b_low + a_low @ b_high)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return c
