"""Variance of the rows of x: mean, mean deviation and squares in three passes over memory (PASSES 3) or sums in one (PASSES 1)."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {}


@triton.jit
def variance_once(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0).to(tl.int64) * N
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row + at, mask=at < N, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / N
    tl.store(y_ptr + tl.program_id(0), tl.sum(squares, axis=0) / N - mean * mean)


@triton.jit
def variance_thrice(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0).to(tl.int64) * N
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(row + at, mask=at < N, other=0.0)
    mean = tl.sum(total, axis=0) / N
    off = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        off += tl.load(row + at, mask=at < N, other=mean) - mean
    rest = tl.sum(off, axis=0) / N
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(row + at, mask=at < N, other=mean) - mean
        squares += x * x
    tl.store(y_ptr + tl.program_id(0), tl.sum(squares, axis=0) / N - rest * rest)


def run(x) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty((m,), device=x.device, dtype=x.dtype)
    kernel = variance_once if CONFIG["PASSES"] == 1 else variance_thrice
    kernel[(m,)](x, y, n, BLOCK=CONFIG["BLOCK"], num_warps=CONFIG["num_warps"])
    return y
