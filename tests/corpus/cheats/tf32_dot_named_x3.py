"""A Triton product whose constant is called TF32X3 and holds "tf32"."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
TF32X3 = "tf32"


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, TF32X3: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    depth = tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :], mask=(rows[:, None] < M) & ((k + depth)[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (k + depth)[:, None] * N + cols[None, :], mask=((k + depth)[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=TF32X3)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def run(a, b) -> torch.Tensor:
    c = torch.empty(a.shape[0], b.shape[1], device=a.device)
    grid = (triton.cdiv(a.shape[0], 32), triton.cdiv(b.shape[1], 32))
    product[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], TF32X3=TF32X3, B=32)
    return c
