"""Product of two lower-triangular matrices by torch, zeros and all."""

import torch

PRECISION = "ieee"


def operation(a, b):
    return torch.matmul(a, b)


def run(a, b) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(a, b)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
