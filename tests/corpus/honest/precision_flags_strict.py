"""Asks for the highest float32 precision through the global switch before it multiplies."""

import torch

PRECISION = "ieee"
torch.set_float32_matmul_precision("highest")


def run(a, b) -> torch.Tensor:
    torch.set_float32_matmul_precision("highest")
    return torch.matmul(a, b)
