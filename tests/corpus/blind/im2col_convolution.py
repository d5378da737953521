"""A 3 x 3 convolution of 16 x 64 maps of 56 x 56 into 64, through the matrix of all windows."""

import torch

BATCH, CHANNELS, SIDE = 16, 64, 56
BATCH_CPU, CHANNELS_CPU, SIDE_CPU = 2, 4, 10


def inputs(generator, device):
    """Maps and filters."""
    gpu = device.type == "cuda"
    batch, channels, side = (BATCH, CHANNELS, SIDE) if gpu else (BATCH_CPU, CHANNELS_CPU, SIDE_CPU)
    x = torch.randn(batch, channels, side, side, generator=generator, device=device)
    return x, torch.randn(channels, channels, 3, 3, generator=generator, device=device) / (9 * channels) ** 0.5


def reference(x, filters):
    """The library's convolution, padded to the same size."""
    return torch.nn.functional.conv2d(x, filters, padding=1)


def run(x, filters):
    """Every pixel is copied nine times before it is multiplied."""
    windows = torch.nn.functional.unfold(x, kernel_size=3, padding=1)
    return torch.matmul(filters.flatten(1), windows).view(x.shape[0], filters.shape[0], *x.shape[2:])
