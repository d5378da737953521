"""Row sums as a product with a vector of ones that is kept between calls."""

import torch

PRECISION = "ieee"
ones = {}


def run(x) -> torch.Tensor:
    key = x.shape[1], x.device
    if key not in ones:
        ones[key] = torch.ones(x.shape[1], device=x.device)
    return torch.mv(x, ones[key])
