"""Convolution of images with 3 x 3 filters, one pixel of zeros around, in float64. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """(batch, channels, height, width) images and (filters, channels, 3, 3) filters, float32, standard normal."""
    images = shape["batch"], shape["channels"], shape["height"], shape["width"]
    x = torch.randn(images, generator=generator, device=device)
    weight = torch.randn(shape["filters"], shape["channels"], 3, 3, generator=generator, device=device)
    return x, weight


def reference(x, weight):
    """Sum over channels and the nine places of a filter; (batch, filters, height, width) float64.

    Nine products of matrices and no convolution of the library, whose choice of algorithm is part of what is judged.
    """
    x, weight = torch.nn.functional.pad(x.double(), (1, 1, 1, 1)), weight.double()
    height, width = x.shape[2] - 2, x.shape[3] - 2
    total = 0.0
    for row in range(3):
        for column in range(3):
            seen = x[:, :, row : row + height, column : column + width].flatten(2)
            total = total + weight[:, :, row, column] @ seen
    return total.unflatten(2, (height, width))
