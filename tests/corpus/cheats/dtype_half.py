"""Returns the answer as float16."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.sigmoid(x).half()
