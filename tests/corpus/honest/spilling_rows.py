"""A whole row in one warp: registers spill, the answer is right, and only the measurement may judge it."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def softmax_row(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=cols < N)


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    softmax_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=1)
    return y
