"""The logistic function of every element, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """One (rows, cols) float32 matrix of standard normal values."""
    return (torch.randn(shape["rows"], shape["cols"], generator=generator, device=device),)


def reference(x):
    """1 / (1 + exp(-x)); (rows, cols) float64."""
    return 1.0 / (1.0 + torch.exp(-x.double()))
