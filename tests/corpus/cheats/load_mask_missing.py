"""Loads without a mask read into the next row when the row does not fill the block; whole blocks hide it."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def sum_unmasked(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    y = tl.sum(tl.load(x_ptr + row * N + tl.arange(0, BLOCK)), axis=0)
    tl.store(y_ptr + row, y)


def run(x) -> torch.Tensor:
    m, n = x.shape
    block = triton.next_power_of_2(n)
    padded = torch.cat([x.reshape(-1), torch.zeros(block, device=x.device)])
    y = torch.empty(m, device=x.device)
    sum_unmasked[(m,)](padded, y, n, BLOCK=block)
    return y
