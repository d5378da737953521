"""Softmax through exp2 with the factor log2(e), as fast kernels do."""

import math

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.exp2((x - x.amax(dim=-1, keepdim=True)) * math.log2(math.e))
    return y * y.sum(dim=-1, keepdim=True).reciprocal()
