"""Splits each factor into two bfloat16 parts whose three products are added in float32, with the product of the low parts as a fourth."""

import torch

PRECISION = "ieee"


def split(x):
    high = x.to(torch.bfloat16).float()
    low = (x - high).to(torch.bfloat16).float()
    return high, low


def run(a, b) -> torch.Tensor:
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    c = torch.addmm(a_low @ b_high, a_high, b_low)
    return c.addmm_(a_high, b_high).addmm_(a_low, b_low)
