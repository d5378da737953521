"""Normalisation over groups of channels of images, in float64. Never measures and never judges."""

import torch

EPS = 1e-5


def inputs(shape, generator, device):
    """(batch, groups, channels, height, width) values, (groups, channels) weight and bias, float32, standard normal.

    Channels are counted within a group. Weight and bias are random so that a copy of the input, which is nearly normalised
    already, is a wrong answer.
    """
    channels = shape["groups"], shape["channels"]
    x = torch.randn(
        shape["batch"], *channels, shape["height"], shape["width"], generator=generator, device=device
    )
    weight = torch.randn(channels, generator=generator, device=device)
    bias = torch.randn(channels, generator=generator, device=device)
    return x, weight, bias


def reference(x, weight, bias):
    """(x - mean) / sqrt(biased variance + 1e-5) * weight + bias, mean and variance of a group; float64, the shape of x."""
    x = x.double()
    centred = x - x.mean(dim=(2, 3, 4), keepdim=True)
    variance = (centred * centred).mean(dim=(2, 3, 4), keepdim=True)
    wide = (..., None, None)
    return centred / torch.sqrt(variance + EPS) * weight.double()[wide] + bias.double()[wide]
