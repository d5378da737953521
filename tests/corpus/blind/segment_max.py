"""Largest value of each of 8192 segments whose lengths fall off as 1 / rank: the first has a tenth of all 10 M values."""

import torch
import triton
import triton.language as tl

SEGMENTS, LONGEST = 8192, 1048576
SEGMENTS_CPU, LONGEST_CPU = 16, 1024


def inputs(generator, device):
    """Values and segment bounds (int64)."""
    segments, longest = (SEGMENTS, LONGEST) if device.type == "cuda" else (SEGMENTS_CPU, LONGEST_CPU)
    lengths = longest // torch.arange(1, segments + 1, device=device)
    bounds = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return torch.randn(int(bounds[-1]), generator=generator, device=device), bounds


def reference(values, bounds):
    """The library's reduction by segment."""
    return torch.segment_reduce(values, "max", lengths=bounds.diff())


@triton.jit
def segment_kernel(values, bounds, out, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    first, last = tl.load(bounds + segment), tl.load(bounds + segment + 1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(values + at, mask=at < last, other=float("-inf")))
    tl.store(out + segment, tl.max(best, axis=0))


def run(values, bounds):
    """One program a segment."""
    out = torch.empty(bounds.numel() - 1, device=values.device)
    segment_kernel[(out.numel(),)](values, bounds, out, BLOCK=256)
    return out
