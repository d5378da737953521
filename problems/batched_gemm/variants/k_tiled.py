"""Batched matrix product tiled over k with tl.dot; the batch is the second grid axis, rows are grouped for L2."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"BLOCK_K": 32, "BLOCK_M": 64, "BLOCK_N": 64, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}


@triton.jit
def bmm_tiled(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_az, stride_am, stride_ak, stride_bz, stride_bk, stride_bn,
    stride_cz, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
):
    batch = tl.program_id(1).to(tl.int64)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    first_m = program // (GROUP_M * tiles_n) * GROUP_M
    height = min(tiles_m - first_m, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    rows = (first_m + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (within // height) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + batch * stride_az + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_tile = b_ptr + batch * stride_bz + depth[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_tile, mask=(rows[:, None] < M) & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_tile, mask=(depth[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    c_tile = c_ptr + batch * stride_cz + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_tile, acc, mask=inside)


def run(a, b) -> torch.Tensor:
    (batch, m, k), n = a.shape, b.shape[2]
    c = torch.empty((batch, m, n), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(m, CONFIG["BLOCK_M"]) * triton.cdiv(n, CONFIG["BLOCK_N"]), batch)
    bmm_tiled[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), INPUT_PRECISION=PRECISION, **CONFIG)
    return c
