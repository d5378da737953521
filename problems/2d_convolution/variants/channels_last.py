"""Convolution by torch with the channel as the fastest dimension, which is the order that tensor cores read; the answer lies row by row again."""

import torch

PRECISION = "ieee"


def operation(x, weight):
    x, weight = (value.contiguous(memory_format=torch.channels_last) for value in (x, weight))
    return torch.nn.functional.conv2d(x, weight, padding=1).contiguous()


def run(x, weight) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(x, weight)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
