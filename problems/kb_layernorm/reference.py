"""Layer normalisation over the rows of a matrix, in float64. Never measures and never judges."""

import torch

EPS = 1e-5


def inputs(shape, generator, device):
    """(rows, cols) values, (cols,) weight and (cols,) bias, float32, standard normal.

    Weight and bias are random so that a copy of the input, which is nearly normalised already, is a wrong answer.
    """
    x = torch.randn(shape["rows"], shape["cols"], generator=generator, device=device)
    weight = torch.randn(shape["cols"], generator=generator, device=device)
    bias = torch.randn(shape["cols"], generator=generator, device=device)
    return x, weight, bias


def reference(x, weight, bias):
    """(x - mean) / sqrt(biased variance + 1e-5) * weight + bias, row by row; (rows, cols) float64."""
    x = x.double()
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + EPS) * weight.double() + bias.double()
