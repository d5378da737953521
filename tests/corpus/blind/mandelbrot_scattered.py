"""Escape times of 1 M points about the Mandelbrot set in fixed point (12 bits of fraction), in no order."""

import torch
import triton
import triton.language as tl

POINTS, POINTS_CPU = 1048576, 256
MOST, FRACTION = 64, 12
ESCAPED = 4 << (2 * FRACTION)


def inputs(generator, device):
    """Real and imaginary parts in [-2, 2) as int32 with 12 bits of fraction."""
    n = POINTS if device.type == "cuda" else POINTS_CPU
    edge = 2 << FRACTION
    return tuple(
        torch.randint(-edge, edge, (n,), generator=generator, device=device, dtype=torch.int32) for _ in range(2)
    )


def reference(real, imaginary):
    """The number of steps that a point stays within radius 2, at most 64."""
    x, y, steps = torch.zeros_like(real), torch.zeros_like(real), torch.zeros_like(real)
    for _ in range(MOST):
        alive = x * x + y * y <= ESCAPED
        steps = steps + alive.int()
        next_x = ((x * x - y * y) >> FRACTION) + real
        next_y = ((2 * x * y) >> FRACTION) + imaginary
        x, y = torch.where(alive, next_x, x), torch.where(alive, next_y, y)
    return steps


@triton.jit
def escape_kernel(
    real, imaginary, steps, n, ESCAPED: tl.constexpr, MOST: tl.constexpr, FRACTION: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx, cy = tl.load(real + at, mask=at < n, other=0), tl.load(imaginary + at, mask=at < n, other=0)
    x, y, count = tl.zeros_like(cx), tl.zeros_like(cx), tl.zeros_like(cx)
    alive = tl.full((BLOCK,), 1, tl.int32)
    step = 0
    while (step < MOST) & (tl.max(alive, axis=0) > 0):
        alive = (x * x + y * y <= ESCAPED).to(tl.int32)
        count += alive
        next_x = ((x * x - y * y) >> FRACTION) + cx
        next_y = ((2 * x * y) >> FRACTION) + cy
        x, y = tl.where(alive > 0, next_x, x), tl.where(alive > 0, next_y, y)
        step += 1
    tl.store(steps + at, count, mask=at < n)


def run(real, imaginary):
    """A block goes on until the last of its points has escaped."""
    steps = torch.empty_like(real)
    n = real.numel()
    grid = (triton.cdiv(n, 256),)
    escape_kernel[grid](real, imaginary, steps, n, ESCAPED=ESCAPED, MOST=MOST, FRACTION=FRACTION, BLOCK=256)
    return steps
