"""The product of the transposed factors, turned round before it is handed out."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    return torch.matmul(b.t(), a.t()).t().contiguous()
