"""Synchronises the device and empties the allocator's cache inside the call."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    torch.cuda.synchronize()
    y = x.sum(dim=-1)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return y
