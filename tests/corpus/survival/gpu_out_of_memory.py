"""Takes more memory than the card has."""

import torch


def run(x):
    return [torch.empty(1 << 34, device=x.device) for _ in range(64)]
