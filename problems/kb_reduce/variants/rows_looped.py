"""Row sums over tiles of several rows: a running tile is added to along the row and summed once at the end."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"BLOCK": 1024, "ROWS": 1, "STAGES": 3, "num_warps": 4}


@triton.jit
def sum_rows(
    x_ptr, y_ptr, M, N, stride_x,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in tl.range(0, N, BLOCK, num_stages=STAGES):
        tile = x_ptr + rows[:, None] * stride_x + (start + cols)[None, :]
        acc += tl.load(tile, mask=(rows[:, None] < M) & ((start + cols)[None, :] < N), other=0.0)
    tl.store(y_ptr + rows, tl.sum(acc, axis=1), mask=rows < M)


def run(x) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty((m,), device=x.device, dtype=x.dtype)
    sum_rows[(triton.cdiv(m, CONFIG["ROWS"]),)](x, y, m, n, x.stride(0), INPUT_PRECISION=PRECISION, **CONFIG)
    return y
