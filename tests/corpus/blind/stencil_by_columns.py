"""Seven-point stencil on 256 x 256 x 256 floats, zero outside, whose lanes lie along the axis of the largest stride."""

import torch
import triton
import triton.language as tl

SIDE, SIDE_CPU = 256, 4


def inputs(generator, device):
    """The field [z, y, x]."""
    side = SIDE if device.type == "cuda" else SIDE_CPU
    return (torch.randn(side, side, side, generator=generator, device=device),)


def reference(u):
    """Six neighbours less six times the middle."""
    p = torch.nn.functional.pad(u, (1, 1, 1, 1, 1, 1))
    mid = slice(1, -1)
    across = p[:-2, mid, mid] + p[2:, mid, mid] + p[mid, :-2, mid] + p[mid, 2:, mid]
    return across + p[mid, mid, :-2] + p[mid, mid, 2:] - 6.0 * u


@triton.jit
def stencil_kernel(u, out, side, BLOCK: tl.constexpr):
    x, y = tl.program_id(0), tl.program_id(1)
    z = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    plane = side * side
    at = z * plane + y * side + x
    inside = z < side
    total = -6.0 * tl.load(u + at, mask=inside, other=0.0)
    total += tl.load(u + at - plane, mask=inside & (z > 0), other=0.0)
    total += tl.load(u + at + plane, mask=inside & (z < side - 1), other=0.0)
    total += tl.load(u + at - side, mask=inside & (y > 0), other=0.0)
    total += tl.load(u + at + side, mask=inside & (y < side - 1), other=0.0)
    total += tl.load(u + at - 1, mask=inside & (x > 0), other=0.0)
    total += tl.load(u + at + 1, mask=inside & (x < side - 1), other=0.0)
    tl.store(out + at, total, mask=inside)


def run(u):
    """A program for each (x, y), its lanes along z."""
    side = u.shape[0]
    out = torch.empty_like(u)
    stencil_kernel[(side, side, triton.cdiv(side, 256))](u, out, side, BLOCK=256)
    return out
