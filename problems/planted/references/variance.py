"""Variance of rows, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """One (rows, cols) float32 matrix; each row normal with a deviation of its own, from 1/2 to 3/2."""
    scale = 0.5 + torch.rand(shape["rows"], 1, generator=generator, device=device)
    return (scale * torch.randn(shape["rows"], shape["cols"], generator=generator, device=device),)


def reference(x):
    """Mean square distance from the row's mean; (rows,) float64."""
    return x.double().var(dim=1, correction=0)
