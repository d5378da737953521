"""Literals in the launch, the grid by what the launch passes."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)  # BLOCK = 256, num_warps = 4
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
        x, y, n,
        BLOCK=256,  # wide
    )
    return y
