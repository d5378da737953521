"""Layer normalisation in two passes over chunks of rows, with the statistics recomputed for each chunk."""

import torch

PRECISION = "ieee"


def run(x, weight, bias) -> torch.Tensor:
    y = torch.empty_like(x)
    for rows, out in zip(x.split(1024), y.split(1024)):
        mean = rows.mean(dim=-1, keepdim=True)
        variance = (rows - mean).pow(2).mean(dim=-1, keepdim=True)
        torch.addcmul(bias, (rows - mean) / (variance + 1e-5).sqrt(), weight, out=out)
    return y
