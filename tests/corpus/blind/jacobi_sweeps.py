"""256 Jacobi sweeps of a Poisson problem on a grid of 128 x 128, zero outside: each sweep is a kernel launch."""

import torch
import triton
import triton.language as tl

SIDE, SIDE_CPU = 128, 8
SWEEPS_PER_SIDE = 2


def inputs(generator, device):
    """First guess and right-hand side."""
    side = SIDE if device.type == "cuda" else SIDE_CPU
    return tuple(torch.randn(side, side, generator=generator, device=device) for _ in range(2))


def reference(u, f):
    """The sweeps with shifted copies."""
    for _ in range(SWEEPS_PER_SIDE * u.shape[0]):
        p = torch.nn.functional.pad(u, (1, 1, 1, 1))
        u = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + f)
    return u


@triton.jit
def sweep_kernel(u, f, out, side, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // side, at % side
    inside = at < side * side
    up = tl.load(u + at - side, mask=inside & (row > 0), other=0.0)
    down = tl.load(u + at + side, mask=inside & (row < side - 1), other=0.0)
    left = tl.load(u + at - 1, mask=inside & (column > 0), other=0.0)
    right = tl.load(u + at + 1, mask=inside & (column < side - 1), other=0.0)
    tl.store(out + at, 0.25 * (up + down + left + right + tl.load(f + at, mask=inside, other=0.0)), mask=inside)


def run(u, f):
    """Two buffers in turn, one launch a sweep."""
    side = u.shape[0]
    old, new = u.clone(), torch.empty_like(u)
    for _ in range(SWEEPS_PER_SIDE * side):
        sweep_kernel[(triton.cdiv(side * side, 256),)](old, f, new, side, BLOCK=256)
        old, new = new, old
    return old
