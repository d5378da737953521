"""Softmax of rows, warps as a keyword, no configuration."""

import torch
import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)


def run(x):
    m, n = x.shape
    x = x.contiguous()
    y = torch.empty_like(x)
    rows[(m,)](x, y, n, BLOCK=triton.next_power_of_2(n), num_warps=2)
    return y
