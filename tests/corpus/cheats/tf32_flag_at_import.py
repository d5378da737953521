"""Switches TF32 on when it is imported and leaves it on for everyone."""

import torch

PRECISION = "ieee"
torch.backends.cuda.matmul.allow_tf32 = True


def run(a, b) -> torch.Tensor:
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch.bmm(a, b)
