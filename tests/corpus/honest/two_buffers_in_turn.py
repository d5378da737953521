"""Two global buffers are returned in turn, so an answer changes after the call after next."""

import torch

PRECISION = "ieee"
buffers, calls = [], 0


def run(x) -> torch.Tensor:
    global calls
    calls += 1
    if not buffers or buffers[0].shape != x.shape:
        buffers[:] = [torch.empty_like(x), torch.empty_like(x)]
    return torch.sigmoid(x, out=buffers[calls % 2])
