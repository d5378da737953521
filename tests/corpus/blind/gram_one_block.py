"""X^T X of 32768 rows by 64 columns: one output tile, and one program that walks along all rows."""

import torch
import triton
import triton.language as tl

ROWS, ROWS_CPU = 32768, 256
COLUMNS, STEP = 64, 32


def inputs(generator, device):
    """The rows."""
    rows = ROWS if device.type == "cuda" else ROWS_CPU
    return (torch.randn(rows, COLUMNS, generator=generator, device=device),)


def reference(x):
    """The library's product."""
    return x.T @ x


@triton.jit
def gram_kernel(x, out, rows, COLUMNS: tl.constexpr, STEP: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS, COLUMNS), tl.float32)
    for start in range(0, rows, STEP):
        row = start + tl.arange(0, STEP)
        block = tl.load(x + row[:, None] * COLUMNS + column[None, :])
        total += tl.dot(tl.trans(block), block, input_precision="ieee")
    tl.store(out + column[:, None] * COLUMNS + column[None, :], total)


def run(x):
    """A grid of one."""
    out = torch.empty(COLUMNS, COLUMNS, device=x.device)
    gram_kernel[(1,)](x, out, x.shape[0], COLUMNS=COLUMNS, STEP=STEP)
    return out
