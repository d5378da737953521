"""Writes a terabyte beyond its output, which poisons the context."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def beyond(y_ptr, FAR):
    tl.store(y_ptr + FAR, 1.0)


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    beyond[(1,)](y, 1 << 40)
    return y
