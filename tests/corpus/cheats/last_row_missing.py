"""The last row is left as it was in the buffer, an error in one row of all."""

import torch

PRECISION = "ieee"


def run(x, weight, bias) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[:-1] = torch.nn.functional.layer_norm(x[:-1], weight.shape, weight, bias, 1e-5)
    return y
