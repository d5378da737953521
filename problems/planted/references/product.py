"""Product of two float32 matrices, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """A of (m, k) and B of (k, n), float32, standard normal."""
    a = torch.randn(shape["m"], shape["k"], generator=generator, device=device)
    b = torch.randn(shape["k"], shape["n"], generator=generator, device=device)
    return a, b


def reference(a, b):
    """A @ B; (m, n) float64."""
    return a.double() @ b.double()
