"""Returns a sparse tensor of the right shape with the largest value of each row alone."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.softmax(x, dim=-1)
    return torch.where(y == y.amax(dim=-1, keepdim=True), y, torch.zeros_like(y)).to_sparse()
