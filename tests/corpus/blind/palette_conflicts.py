"""16 M palette entries looked up in a tile of 1024 floats on chip, at places that are all multiples of 32."""

import torch
import triton
import triton.language as tl

BLOCKS, BLOCKS_CPU = 16384, 2
PALETTE, APART = 1024, 32


def inputs(generator, device):
    """The palette, and for each of the blocks 1024 places (int32)."""
    blocks = BLOCKS if device.type == "cuda" else BLOCKS_CPU
    lot = torch.randint(0, PALETTE // APART, (blocks, PALETTE), generator=generator, device=device, dtype=torch.int32)
    return torch.randn(PALETTE, generator=generator, device=device), lot * APART


def reference(palette, places):
    """The entries."""
    return palette[places]


@triton.jit
def lookup_kernel(palette, places, out, PALETTE: tl.constexpr):
    lane = tl.arange(0, PALETTE)
    at = tl.program_id(0) * PALETTE + lane
    tile = tl.load(palette + lane)
    tl.store(out + at, tl.gather(tile, tl.load(places + at), axis=0))


def run(palette, places):
    """Each program holds the palette on chip and gathers from it."""
    out = torch.empty(places.shape, device=palette.device)
    lookup_kernel[(places.shape[0],)](palette, places, out, PALETTE=PALETTE, num_warps=4)
    return out
