"""Sparse matrix times vector in CSR, most rows of 16 entries and every 4096th of 262144: one program a row."""

import torch
import triton
import triton.language as tl

ROWS, ROWS_CPU = 16384, 16
SHORT, LONG, LONG_CPU = 16, 262144, 512
LONG_EVERY, COLUMNS = 4096, 65536


def inputs(generator, device):
    """Row ends (int64), column numbers (int32), values and the dense vector."""
    rows, long = (ROWS, LONG) if device.type == "cuda" else (ROWS_CPU, LONG_CPU)
    lengths = torch.full((rows,), SHORT, device=device)
    lengths[:: min(LONG_EVERY, rows // 2)] = long
    ends = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    total = int(ends[-1])
    columns = torch.randint(0, COLUMNS, (total,), generator=generator, device=device, dtype=torch.int32)
    values = torch.randn(total, generator=generator, device=device)
    return ends, columns, values, torch.randn(COLUMNS, generator=generator, device=device)


def reference(ends, columns, values, x):
    """Sums of the rows' products."""
    return torch.segment_reduce(values * x[columns], "sum", lengths=ends.diff())


@triton.jit
def row_kernel(ends, columns, values, x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first, last = tl.load(ends + row), tl.load(ends + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        column = tl.load(columns + at, mask=at < last, other=0)
        value = tl.load(values + at, mask=at < last, other=0.0)
        total += value * tl.load(x + column, mask=at < last, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))


def run(ends, columns, values, x):
    """A program for each row, however long it is."""
    rows = ends.numel() - 1
    y = torch.empty(rows, device=x.device)
    row_kernel[(rows,)](ends, columns, values, x, y, BLOCK=128, num_warps=4)
    return y
