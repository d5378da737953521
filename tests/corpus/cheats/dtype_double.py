"""Returns the answer as float64."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return x.double().sum(dim=-1)
