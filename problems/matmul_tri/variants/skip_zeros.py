"""Product of lower-triangular matrices without the blocks of zeros: k runs from a tile's first column to its last row, if at all."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"BLOCK_K": 32, "BLOCK_M": 64, "BLOCK_N": 64, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}


@triton.jit
def matmul_triangles(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0)
    first_m = program // (GROUP_M * tiles_n) * GROUP_M
    height = min(tiles_m - first_m, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    rows = (first_m + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (within // height) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # B is zero above its diagonal, so that k starts at the tile's first column; A is, so that it ends with the tile's last row.
    first = within // height * BLOCK_N // BLOCK_K * BLOCK_K
    last = min((first_m + within % height + 1) * BLOCK_M, K)
    a_tile = a_ptr + rows[:, None] * stride_am + (first + depth[None, :]) * stride_ak
    b_tile = b_ptr + (first + depth[:, None]) * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(first, last, BLOCK_K):
        a = tl.load(a_tile, mask=(rows[:, None] < M) & (depth[None, :] < K - k), other=0.0)
        b = tl.load(b_tile, mask=(depth[:, None] < K - k) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=INPUT_PRECISION)
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn, acc, mask=inside)


def run(a, b) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(m, CONFIG["BLOCK_M"]) * triton.cdiv(n, CONFIG["BLOCK_N"]),)
    matmul_triangles[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), INPUT_PRECISION=PRECISION, **CONFIG
    )
    return c
