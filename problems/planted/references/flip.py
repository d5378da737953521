"""0.75 - x, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """One (rows, cols) float32 matrix of standard normal values."""
    return (torch.randn(shape["rows"], shape["cols"], generator=generator, device=device),)


def reference(x):
    """0.75 - x; (rows, cols) float64."""
    return 0.75 - x.double()
