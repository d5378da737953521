"""Keeps constants, a mean vector and a table of sizes, between calls, but no results."""

import torch

PRECISION = "ieee"
table = {}


def run(x, weight, bias) -> torch.Tensor:
    key = x.shape[1], x.device
    if key not in table:
        table[key] = torch.full((x.shape[1], 1), 1.0 / x.shape[1], device=x.device)
    centred = x - x @ table[key]
    return centred * ((centred * centred) @ table[key] + 1e-5).rsqrt() * weight + bias
