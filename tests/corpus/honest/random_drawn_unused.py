"""Draws random numbers, reseeds the global generator and uses neither."""

import random

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    torch.manual_seed(1234)
    random.seed(1234)
    torch.rand(7, device=x.device)
    torch.randperm(x.shape[0], device=x.device)
    return torch.sum(x, 1)
