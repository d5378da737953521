"""Rotary position embedding of 4 x 16 heads of 2048 positions by 128, in an operator for each step."""

import torch

BATCH, HEADS, POSITIONS, WIDTH = 4, 16, 2048, 128
BATCH_CPU, HEADS_CPU, POSITIONS_CPU, WIDTH_CPU = 1, 2, 32, 16


def inputs(generator, device):
    """Queries, and the cosines and sines by position for half of the width."""
    gpu = device.type == "cuda"
    b, h, n, d = (BATCH, HEADS, POSITIONS, WIDTH) if gpu else (BATCH_CPU, HEADS_CPU, POSITIONS_CPU, WIDTH_CPU)
    angle = 6.3 * torch.rand(n, d // 2, generator=generator, device=device)
    return torch.randn(b, h, n, d, generator=generator, device=device), torch.cos(angle), torch.sin(angle)


def reference(x, cosine, sine):
    """As rotations of pairs (x[i], x[i + half])."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def run(x, cosine, sine):
    """Tables repeated to full size, x turned by a half, two products and a sum: each through memory."""
    half = x.shape[-1] // 2
    wide_cosine = torch.cat([cosine, cosine], dim=-1).expand_as(x).contiguous()
    wide_sine = torch.cat([sine, sine], dim=-1).expand_as(x).contiguous()
    turned = torch.cat([torch.neg(x[..., half:]), x[..., :half]], dim=-1)
    return torch.add(torch.mul(x, wide_cosine), torch.mul(turned, wide_sine))
