"""Matrix product in tiles over k; numbers below float32 are summed in float32."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {}


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * stride_bk + cols[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(depth[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        total = tl.dot(a, b, total, input_precision=INPUT_PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


def run(a, b) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(m, CONFIG["BLOCK_M"]), triton.cdiv(n, CONFIG["BLOCK_N"]))
    product[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), INPUT_PRECISION=PRECISION, **CONFIG)
    return c
