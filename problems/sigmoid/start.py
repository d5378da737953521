"""Logistic function as it is often written down: four torch operations, each a pass over memory."""

import torch

PRECISION = "ieee"


def operation(x):
    return 1.0 / (1.0 + torch.exp(-x))


def run(x) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(x)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
