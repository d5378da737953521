"""Logistic function in one pass over memory."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"BLOCK": 1024, "num_warps": 4}


@triton.jit
def sigmoid_fused(x_ptr, y_ptr, SIZE, BLOCK: tl.constexpr, INPUT_PRECISION: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < SIZE, other=0.0)
    tl.store(y_ptr + at, 1.0 / (1.0 + tl.exp(-x)), mask=at < SIZE)


def run(x) -> torch.Tensor:
    y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(x.numel(), CONFIG["BLOCK"]),)
    sigmoid_fused[grid](x, y, x.numel(), INPUT_PRECISION=PRECISION, **CONFIG)
    return y
