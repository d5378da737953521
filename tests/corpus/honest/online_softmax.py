"""Online softmax in Triton: running maximum and running sum in one pass, then a second pass to write."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def softmax_online(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-1e30)
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.where(cols < N, tl.exp(x - new), 0.0)
        top = new
    highest = tl.max(top, axis=0)
    denominator = tl.sum(total * tl.exp(top - highest), axis=0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-1e30)
        tl.store(y_ptr + row * N + cols, tl.exp(x - highest) / denominator, mask=cols < N)


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    softmax_online[(x.shape[0],)](x, y, x.shape[1], BLOCK=min(1024, max(16, triton.next_power_of_2(x.shape[1] // 2))))
    return y
