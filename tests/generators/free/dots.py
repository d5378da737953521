"""A product in three parts of k, whose dots say all that a dot can say of its precision."""

import torch
import triton
import triton.language as tl

BLOCK_M = 32
BLOCK_N = 32


@triton.jit
def product(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, k, 48):
        for part in range(0, 3):
            depth = first + part * 16 + tl.arange(0, 16)
            a = tl.load(a_ptr + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
            b = tl.load(b_ptr + depth[:, None] * n + cols[None, :], mask=(depth[:, None] < k) & (cols[None, :] < n), other=0.0)
            if part == 0:
                acc += tl.dot(a, b)  # Triton's own choice: "tf32"
            elif part == 1:
                acc = tl.dot(a, b, acc, input_precision="tf32")
            else:
                acc = tl.dot(a, b, acc, allow_tf32=True)
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc, mask=inside)


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    a, b = a.contiguous(), b.contiguous()
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    product[(triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))](a, b, c, m, n, k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return c
