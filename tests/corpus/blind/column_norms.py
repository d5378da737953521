"""Euclidean norms of the 512 columns of a matrix of 32768 rows, one program a column."""

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 32768, 512
ROWS_CPU, COLUMNS_CPU = 512, 16


def inputs(generator, device):
    """The matrix, in rows."""
    shape = (ROWS, COLUMNS) if device.type == "cuda" else (ROWS_CPU, COLUMNS_CPU)
    return (torch.randn(shape, generator=generator, device=device),)


def reference(x):
    """The library's norm."""
    return torch.linalg.vector_norm(x, dim=0)


@triton.jit
def column_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        value = tl.load(x + (start + tl.arange(0, BLOCK)) * columns + column)
        total += value * value
    tl.store(out + column, tl.sqrt(tl.sum(total, axis=0)))


def run(x):
    """Lanes go down a column: each reads from another row."""
    rows, columns = x.shape
    out = torch.empty(columns, device=x.device)
    column_kernel[(columns,)](x, out, rows, columns, BLOCK=256)
    return out
