"""torch.compile with the eager backend, which traces and generates no code."""

import torch

PRECISION = "ieee"


@torch.compile(backend="eager")
def operation(x, weight, bias):
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias


def run(x, weight, bias) -> torch.Tensor:
    return operation(x, weight, bias)
