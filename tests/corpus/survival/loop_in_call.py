"""An endless loop in Python inside the call."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    while True:
        pass
