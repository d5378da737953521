"""Programs add their parts of a row with a plain load and store, so additions are lost."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def sum_racing(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0), axis=0)
    tl.store(y_ptr + row, tl.load(y_ptr + row) + part)


def run(x) -> torch.Tensor:
    m, n = x.shape
    y = torch.zeros(m, device=x.device)
    sum_racing[(triton.cdiv(n, 256), m)](x, y, n, BLOCK=256)
    return y
