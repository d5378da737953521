"""The product through torch.nn.functional.linear with a transposed second factor."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    with torch.inference_mode():
        c = torch.nn.functional.linear(a, b.t())
    return c.clone()
