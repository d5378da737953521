"""Softmax in half precision; the problem has no product, so no contract allows it."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.softmax(x.half(), dim=-1).float()
