"""65536 walkers follow 128 links each through a table of 16 M random links, and report where they end."""

import torch
import triton
import triton.language as tl

WALKERS, LINKS, HOPS = 65536, 16777216, 128
WALKERS_CPU, LINKS_CPU = 256, 4096


def inputs(generator, device):
    """The links and where each walker starts (int32)."""
    walkers, links = (WALKERS, LINKS) if device.type == "cuda" else (WALKERS_CPU, LINKS_CPU)
    return tuple(
        torch.randint(0, links, (n,), generator=generator, device=device, dtype=torch.int32) for n in (links, walkers)
    )


def reference(link, start):
    """All walkers a hop at a time."""
    for _ in range(HOPS):
        start = link[start]
    return start


@triton.jit
def walk_kernel(link, start, out, HOPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(start + at)
    for _ in range(HOPS):
        place = tl.load(link + place)
    tl.store(out + at, place)


def run(link, start):
    """Each read waits for the one before."""
    out = torch.empty_like(start)
    walk_kernel[(start.numel() // 128,)](link, start, out, HOPS=HOPS, BLOCK=128)
    return out
