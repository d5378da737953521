"""y = 0.75 - x by an odd number of flips, each a multiplication and an addition by torch, with a kernel for each."""

import torch

PRECISION = "ieee"
CONFIG = {}


def run(x) -> torch.Tensor:
    y = x
    for _ in range(CONFIG["FLIPS"]):
        y = y * -1.0 + 0.75
    return y
