"""Works on a transposed copy and hands back a contiguous result."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    turned = x.t().contiguous()
    return torch.sigmoid(turned).t().contiguous()
