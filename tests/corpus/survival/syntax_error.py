"""The source breaks off in the middle of a line."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=
