"""Split-K product: four programs per tile add their parts by atomics in any order."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def split_k(a_ptr, b_ptr, c_ptr, M, N, K, SPLIT: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, INPUT_PRECISION: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for step in range(tl.program_id(2), tl.cdiv(K, BK), SPLIT):
        depth = step * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0)
        b = tl.load(b_ptr + depth[:, None] * N + cols[None, :], mask=(depth[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
    tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def run(a, b) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros(m, n, device=a.device)
    split_k[(triton.cdiv(m, 32), triton.cdiv(n, 32), 4)](a, b, c, m, n, k, SPLIT=4, B=32, BK=16, INPUT_PRECISION=PRECISION)
    return c
