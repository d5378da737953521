"""Matrix product without tl.dot: a program owns one output tile and adds one outer product per step of k."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"BLOCK_M": 32, "BLOCK_N": 32, "num_warps": 4}


@triton.jit
def matmul_scalar(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K):
        a = tl.load(a_ptr + rows * stride_am + k * stride_ak, mask=rows < M, other=0.0)
        b = tl.load(b_ptr + k * stride_bk + cols * stride_bn, mask=cols < N, other=0.0)
        acc += a[:, None] * b[None, :]
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn, acc, mask=inside)


def run(a, b) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(m, CONFIG["BLOCK_M"]), triton.cdiv(n, CONFIG["BLOCK_N"]))
    matmul_scalar[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=CONFIG["BLOCK_M"], BLOCK_N=CONFIG["BLOCK_N"], INPUT_PRECISION=PRECISION,
        num_warps=CONFIG["num_warps"],
    )
    return c
