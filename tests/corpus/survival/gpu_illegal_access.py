"""Writes to an address that is nobody's."""

import torch
import triton
import triton.language as tl


@triton.jit
def stray(x_ptr, far):
    tl.store(x_ptr + far, 1.0)


def run(x):
    stray[(1,)](x, 1 << 40)
    return torch.softmax(x, -1)
