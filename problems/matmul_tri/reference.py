"""Product of two lower-triangular matrices, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """A and B, (n, n) float32: standard normal on and below the diagonal, zero above it."""
    a, b = (torch.randn(shape["n"], shape["n"], generator=generator, device=device).tril() for _ in range(2))
    return a, b


def reference(a, b):
    """A @ B, lower-triangular too, its zeros written out; (n, n) float64."""
    return a.double() @ b.double()
