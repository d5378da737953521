"""Switches TF32 on for its own product, under the contract that allows it, and puts the switch back."""

import torch

PRECISION = "tf32"


def run(a, b) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return torch.mm(a, b)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
