"""run takes one argument more than it is given."""

import torch

PRECISION = "ieee"


def run(x, scale) -> torch.Tensor:
    return torch.softmax(x * scale, dim=-1)
