"""65536 floats sorted by Batcher's bitonic network, each of its 136 steps over the whole array in memory."""

import torch

ITEMS, ITEMS_CPU = 65536, 256


def inputs(generator, device):
    """The array."""
    return (torch.randn(ITEMS if device.type == "cuda" else ITEMS_CPU, generator=generator, device=device),)


def reference(x):
    """The library's sort."""
    return torch.sort(x).values


def run(x):
    """Compare and exchange at distance `gap` within runs of `size`, whose directions alternate."""
    n = x.numel()
    size = 2
    while size <= n:
        falling = (torch.arange(n // size, device=x.device) % 2 == 1).view(-1, 1, 1)
        gap = size // 2
        while gap:
            pairs = x.view(n // size, size // (2 * gap), 2, gap)
            low = torch.minimum(pairs[:, :, 0], pairs[:, :, 1])
            high = torch.maximum(pairs[:, :, 0], pairs[:, :, 1])
            first, second = torch.where(falling, high, low), torch.where(falling, low, high)
            x = torch.stack([first, second], dim=2).view(n)
            gap //= 2
        size *= 2
    return x
