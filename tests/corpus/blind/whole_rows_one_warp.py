"""32768 rows of 1024 floats standardized to mean 0 and variance 1, sixteen rows at a time in the registers of one warp."""

import torch
import triton
import triton.language as tl

ROWS, ROWS_CPU = 32768, 32
COLUMNS, AT_ONCE = 1024, 16


def inputs(generator, device):
    """The rows."""
    rows = ROWS if device.type == "cuda" else ROWS_CPU
    return (torch.randn(rows, COLUMNS, generator=generator, device=device) + 0.5,)


def reference(x):
    """The library's norm, without weights."""
    return torch.nn.functional.layer_norm(x, (x.shape[1],), eps=1e-5)


@triton.jit
def rows_kernel(x, out, COLUMNS: tl.constexpr, AT_ONCE: tl.constexpr):
    row = tl.program_id(0) * AT_ONCE + tl.arange(0, AT_ONCE)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + at)
    mean = tl.sum(values, axis=1) / COLUMNS
    apart = values - mean[:, None]
    variance = tl.sum(apart * apart, axis=1) / COLUMNS
    tl.store(out + at, apart / tl.sqrt(variance + 1e-5)[:, None])


def run(x):
    """512 values a lane: more than a thread has registers."""
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0] // AT_ONCE,)](x, out, COLUMNS=COLUMNS, AT_ONCE=AT_ONCE, num_warps=1)
    return out
