"""Histogram of 4 M whole numbers over 256 bins, where nine of ten numbers fall into one bin, which the draw chooses."""

import torch
import triton
import triton.language as tl

ITEMS, ITEMS_CPU = 4194304, 2048
BINS, HOT_PERCENT = 256, 90


def inputs(generator, device):
    """The items as int32."""
    n = ITEMS if device.type == "cuda" else ITEMS_CPU
    spread = torch.randint(0, BINS, (n,), generator=generator, device=device)
    hot = torch.randint(0, BINS, (1,), generator=generator, device=device)
    lot = torch.randint(0, 100, (n,), generator=generator, device=device)
    return (torch.where(lot < HOT_PERCENT, hot, spread).to(torch.int32),)


def reference(items):
    """Counts by bin."""
    return torch.bincount(items, minlength=BINS).to(torch.int32)


@triton.jit
def count_kernel(items, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    item = tl.load(items + at, mask=at < n, other=0)
    tl.atomic_add(counts + item, 1, mask=at < n)


def run(items):
    """One atomic addition for each item, to the bins in global memory."""
    counts = torch.zeros(BINS, dtype=torch.int32, device=items.device)
    n = items.numel()
    count_kernel[(triton.cdiv(n, 1024),)](items, counts, n, BLOCK=1024)
    return counts
