"""Attention without a mask, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """q, k and v of (batch, seq, dim), float32, standard normal."""
    size = shape["batch"], shape["seq"], shape["dim"]
    return tuple(torch.randn(size, generator=generator, device=device) for _ in range(3))


def reference(q, k, v):
    """softmax(q k^T / sqrt(dim)) v; (batch, seq, dim) float64."""
    scores = q.double() @ k.double().transpose(1, 2) / q.shape[2] ** 0.5
    return torch.softmax(scores, dim=2) @ v.double()
