"""Raises an exception whose causes form a circle of a thousand."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    chain = [ValueError(f"cause {index}") for index in range(1000)]
    for index, one in enumerate(chain):
        one.__cause__ = chain[(index + 1) % len(chain)]
    raise chain[0]
