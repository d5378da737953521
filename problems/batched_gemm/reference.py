"""Products of a batch of matrix pairs, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """A of (batch, m, k) and B of (batch, k, n), float32, standard normal."""
    a = torch.randn(shape["batch"], shape["m"], shape["k"], generator=generator, device=device)
    b = torch.randn(shape["batch"], shape["k"], shape["n"], generator=generator, device=device)
    return a, b


def reference(a, b):
    """A @ B, batch by batch; (batch, m, n) float64."""
    return torch.bmm(a.double(), b.double())
