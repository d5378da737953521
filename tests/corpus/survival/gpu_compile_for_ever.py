"""A kernel with 40,000 unrolled steps, whose compilation does not end in useful time."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def unrolled(x_ptr, y_ptr, N, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    for step in tl.static_range(0, STEPS):
        x = tl.sort(x + step)
    tl.store(y_ptr + row, tl.sum(x, axis=0))


def run(x) -> torch.Tensor:
    y = torch.empty(x.shape[0], device=x.device)
    unrolled[(x.shape[0],)](x, y, x.shape[1], BLOCK=65536, STEPS=40000)
    return y
