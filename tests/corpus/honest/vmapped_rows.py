"""Layer normalisation of one row, mapped over the rows by torch.func.vmap."""

import torch

PRECISION = "ieee"


def one(row, weight, bias):
    centred = row - row.mean()
    return centred * torch.rsqrt((centred * centred).mean() + 1e-5) * weight + bias


def run(x, weight, bias) -> torch.Tensor:
    return torch.func.vmap(one, in_dims=(0, None, None))(x, weight, bias)
