"""16 M single floats read from random places of an array of 64 MiB, scaled and written in order."""

import torch
import triton
import triton.language as tl

ITEMS, ITEMS_CPU = 16777216, 2048


def inputs(generator, device):
    """The array and the places (int32)."""
    n = ITEMS if device.type == "cuda" else ITEMS_CPU
    places = torch.randint(0, n, (n,), generator=generator, device=device, dtype=torch.int32)
    return torch.randn(n, generator=generator, device=device), places


def reference(source, places):
    """Gathered, times two and a half."""
    return source[places] * 2.5


@triton.jit
def gather_kernel(source, places, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(places + at, mask=at < n, other=0)
    tl.store(out + at, tl.load(source + place, mask=at < n) * 2.5, mask=at < n)


def run(source, places):
    """Each lane reads where chance sends it."""
    out = torch.empty_like(source)
    n = source.numel()
    gather_kernel[(triton.cdiv(n, 512),)](source, places, out, n, BLOCK=512)
    return out
