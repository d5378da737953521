"""Launches a kernel that never ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def spin(x_ptr):
    value = tl.load(x_ptr)
    while value == value:
        value = tl.load(x_ptr, volatile=True)


def run(x):
    spin[(1,)](x)
    return torch.softmax(x, -1)
