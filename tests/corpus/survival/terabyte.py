"""Asks the host for a terabyte and more, and touches none of it if it is given."""

import torch

PRECISION = "ieee"
kept = []


def run(x) -> torch.Tensor:
    for shift in (40, 44, 46):
        kept.append(torch.empty(1 << shift, dtype=torch.uint8))
    raise MemoryError("the host promised more than it has")
