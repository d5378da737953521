"""Grouped-query attention, 16 query heads on 2 key heads, 1024 positions by 64: keys repeated, scores in memory."""

import torch

BATCH, HEADS, GROUPS, POSITIONS, WIDTH = 2, 16, 2, 1024, 64
HEADS_CPU, POSITIONS_CPU, WIDTH_CPU = 4, 32, 16


def inputs(generator, device):
    """Queries, keys and values, [batch, head, position, width]."""
    gpu = device.type == "cuda"
    heads, n, d = (HEADS, POSITIONS, WIDTH) if gpu else (HEADS_CPU, POSITIONS_CPU, WIDTH_CPU)
    return tuple(torch.randn(BATCH, h, n, d, generator=generator, device=device) for h in (heads, GROUPS, GROUPS))


def reference(q, k, v):
    """By groups: no key is copied."""
    b, heads, n, d = q.shape
    grouped = q.view(b, GROUPS, heads // GROUPS * n, d)
    weights = torch.softmax(grouped @ k.transpose(-1, -2) / d**0.5, dim=-1)
    return (weights @ v).view(b, heads, n, d)


def run(q, k, v):
    """Scores, scaling, maximum, exponential, sum, quotient and average, one after the other."""
    times = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    scores = torch.matmul(q, keys.transpose(-1, -2))
    scaled = scores / q.shape[-1] ** 0.5
    weights = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, values)
