"""A Triton kernel with a loop of 10**9 steps, which takes hours when interpreted."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def endless(x_ptr, y_ptr, STEPS):
    total = tl.load(x_ptr)
    for step in range(0, STEPS):
        total += tl.load(x_ptr)
    tl.store(y_ptr + tl.program_id(0), total)


def run(x) -> torch.Tensor:
    y = torch.empty(x.shape[0], device=x.device)
    endless[(x.shape[0],)](x, y, 1_000_000_000)
    return y
