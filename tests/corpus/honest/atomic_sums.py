"""Sums by float atomics into a fresh zeroed output, so the order of additions and the last bits vary between calls."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def sum_atomic(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0), axis=0)
    tl.atomic_add(y_ptr + row, part)


def run(x) -> torch.Tensor:
    m, n = x.shape
    y = torch.zeros(m, device=x.device)
    sum_atomic[(triton.cdiv(n, 1024), m)](x, y, n, BLOCK=1024)
    return y
