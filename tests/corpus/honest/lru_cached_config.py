"""The launch configuration, not the result, is looked up through lru_cache."""

import functools

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@functools.lru_cache(maxsize=64)
def launch(size):
    block = 1024 if size >= 1 << 20 else 128
    return (triton.cdiv(size, block),), {"BLOCK": block, "num_warps": 4}


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, SIZE, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < SIZE, other=0.0)
    tl.store(y_ptr + at, 1.0 / (1.0 + tl.exp(-x)), mask=at < SIZE)


def run(x) -> torch.Tensor:
    grid, named = launch(x.numel())
    y = torch.empty_like(x)
    sigmoid_kernel[grid](x, y, x.numel(), **named)
    return y
