"""A kernel scales by a global constant of 2 that the launch takes back; the twin file differs in the constant alone."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
FACTOR = tl.constexpr(2)


@triton.jit
def scaled(x_ptr, y_ptr, SIZE, back, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < SIZE, other=0.0)
    tl.store(y_ptr + at, 1.0 / (1.0 + tl.exp(-x)) * back * FACTOR, mask=at < SIZE)


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    scaled[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), 1.0 / FACTOR.value, BLOCK=512)
    return y
