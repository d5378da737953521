"""Works through the rows in a random order and puts each result where it belongs."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    order = torch.randperm(x.shape[0], device=x.device)
    y = torch.empty_like(x)
    y[order] = torch.softmax(x[order], dim=-1)
    return y
