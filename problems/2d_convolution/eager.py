"""Convolution by torch."""

import torch

PRECISION = "ieee"


def operation(x, weight):
    return torch.nn.functional.conv2d(x, weight, padding=1)


def run(x, weight) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(x, weight)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
