"""Divides the sum of squares by n - 1, a subtle error of half of 1/n."""

import torch

PRECISION = "ieee"


def run(x, weight, bias) -> torch.Tensor:
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias
