"""A Triton product over batches with input_precision ieee, masks on every edge and tiles of 16 by 32."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, INPUT_PRECISION: tl.constexpr):
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        a = tl.load(a_ptr + batch * M * K + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0)
        b = tl.load(b_ptr + batch * K * N + depth[:, None] * N + cols[None, :], mask=(depth[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision=INPUT_PRECISION)
    tl.store(c_ptr + batch * M * N + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def run(a, b) -> torch.Tensor:
    (batch, m, k), n = a.shape, b.shape[2]
    c = torch.empty(batch, m, n, device=a.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 32), batch)
    product[grid](a, b, c, m, n, k, BM=16, BN=32, BK=16, INPUT_PRECISION=PRECISION)
    return c
