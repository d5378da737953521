"""A bfloat16 product under the contract that allows it."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    return (a.bfloat16() @ b.bfloat16()).float()
