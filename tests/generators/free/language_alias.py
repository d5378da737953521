"""triton.language under another name; local constants."""

import torch
import triton
from triton import language as L


@triton.jit
def add(x_ptr, y_ptr, z_ptr, m, n, BLOCK_M: L.constexpr, BLOCK_N: L.constexpr):
    """Sum of two matrices."""
    rows = L.program_id(1) * BLOCK_M + L.arange(0, BLOCK_M)
    cols = L.program_id(0) * BLOCK_N + L.arange(0, BLOCK_N)
    at = rows[:, None] * n + cols[None, :]
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    L.store(z_ptr + at, L.load(x_ptr + at, mask=inside) + L.load(y_ptr + at, mask=inside), mask=inside)


def run(x, y):
    m, n = x.shape
    z = torch.empty_like(x)
    block_m = 16
    block_n = 64
    add[(triton.cdiv(n, block_n), triton.cdiv(m, block_m))](x, y, z, m, n, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=2)
    return z
