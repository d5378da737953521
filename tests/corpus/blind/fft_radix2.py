"""Fourier transforms of 4096 rows of 1024 complex numbers, radix 2, each butterfly stage in operators of its own."""

import math

import torch

ROWS, POINTS = 4096, 1024
ROWS_CPU, POINTS_CPU = 4, 64


def inputs(generator, device):
    """Real and imaginary parts."""
    shape = (ROWS, POINTS) if device.type == "cuda" else (ROWS_CPU, POINTS_CPU)
    return tuple(torch.randn(shape, generator=generator, device=device) for _ in range(2))


def reference(real, imaginary):
    """The library's transform, its parts in the last dimension."""
    return torch.view_as_real(torch.fft.fft(torch.complex(real, imaginary)))


def bit_reversed(points, device):
    order = torch.zeros(1, dtype=torch.int64, device=device)
    while order.numel() < points:
        order = torch.cat([2 * order, 2 * order + 1])
    return order


def run(real, imaginary):
    """Decimation in time: reorder, then log2(points) stages over the whole in memory."""
    rows, points = real.shape
    order = bit_reversed(points, real.device)
    re, im = real[:, order], imaginary[:, order]
    half = 1
    while half < points:
        angle = torch.arange(half, device=real.device) * (-math.pi / half)
        c, s = torch.cos(angle), torch.sin(angle)
        re, im = re.view(rows, -1, 2, half), im.view(rows, -1, 2, half)
        odd_re = re[:, :, 1] * c - im[:, :, 1] * s
        odd_im = re[:, :, 1] * s + im[:, :, 1] * c
        re = torch.stack([re[:, :, 0] + odd_re, re[:, :, 0] - odd_re], dim=2).view(rows, points)
        im = torch.stack([im[:, :, 0] + odd_im, im[:, :, 0] - odd_im], dim=2).view(rows, points)
        half *= 2
    return torch.stack([re, im], dim=-1)
