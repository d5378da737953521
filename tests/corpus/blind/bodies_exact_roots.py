"""Softened gravity between 4096 bodies, with correctly rounded roots and quotients for each of the 16.8 M pairs."""

import torch
import triton
import triton.language as tl

BODIES, BODIES_CPU = 4096, 32
SOFTENING = 0.01


def inputs(generator, device):
    """Positions [3, body] and masses."""
    n = BODIES if device.type == "cuda" else BODIES_CPU
    place = torch.randn(3, n, generator=generator, device=device)
    return place, torch.rand(n, generator=generator, device=device)


def reference(place, mass):
    """Accelerations [3, body]."""
    apart = [axis[None, :] - axis[:, None] for axis in place]
    square = apart[0].square() + apart[1].square() + apart[2].square() + SOFTENING
    pull = mass[None, :] * square.pow(-1.5)
    return torch.stack([(pull * each).sum(dim=1) for each in apart])


@triton.jit
def pull_kernel(place, mass, out, n, SOFTENING: tl.constexpr, MINE: tl.constexpr, THEIRS: tl.constexpr):
    me = tl.program_id(0) * MINE + tl.arange(0, MINE)
    x, y, z = tl.load(place + me), tl.load(place + n + me), tl.load(place + 2 * n + me)
    ax, ay, az = tl.zeros_like(x), tl.zeros_like(x), tl.zeros_like(x)
    for start in range(0, n, THEIRS):
        you = start + tl.arange(0, THEIRS)
        dx = tl.load(place + you)[None, :] - x[:, None]
        dy = tl.load(place + n + you)[None, :] - y[:, None]
        dz = tl.load(place + 2 * n + you)[None, :] - z[:, None]
        square = dx * dx + dy * dy + dz * dz + SOFTENING
        pull = tl.div_rn(tl.load(mass + you)[None, :] + tl.zeros_like(square), square * tl.sqrt_rn(square))
        ax += tl.sum(pull * dx, axis=1)
        ay += tl.sum(pull * dy, axis=1)
        az += tl.sum(pull * dz, axis=1)
    tl.store(out + me, ax)
    tl.store(out + n + me, ay)
    tl.store(out + 2 * n + me, az)


def run(place, mass):
    """Sixteen bodies a program, thirty-two others at a time."""
    n = mass.numel()
    out = torch.empty_like(place)
    pull_kernel[(n // 16,)](place, mass, out, n, SOFTENING=SOFTENING, MINE=16, THEIRS=32)
    return out
