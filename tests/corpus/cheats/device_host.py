"""Computes on the host and returns a host tensor."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.softmax(x.cpu(), dim=-1)
