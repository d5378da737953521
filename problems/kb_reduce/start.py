"""Row sums: a program loads one whole row and adds it up."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"num_warps": 4}


@triton.jit
def sum_row(x_ptr, y_ptr, N, stride_x, BLOCK: tl.constexpr, INPUT_PRECISION: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + row, tl.sum(x, axis=0))


def run(x) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty((m,), device=x.device, dtype=x.dtype)
    sum_row[(m,)](x, y, n, x.stride(0), BLOCK=triton.next_power_of_2(n), INPUT_PRECISION=PRECISION, **CONFIG)
    return y
