"""Computes into a padded new buffer and returns its leading part, a contiguous view of fresh memory."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def sum_rows(x_ptr, y_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    acc = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=(rows[:, None] < M) & (cols[None, :] < N), other=0.0)
    tl.store(y_ptr + rows, tl.sum(acc, axis=1))


def run(x) -> torch.Tensor:
    m, n = x.shape
    programs = triton.cdiv(m, 8)
    y = torch.empty(programs * 8, device=x.device)
    sum_rows[(programs,)](x, y, m, n, ROWS=8, BLOCK=128)
    return y[:m]
