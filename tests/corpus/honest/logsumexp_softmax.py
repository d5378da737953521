"""Softmax as the exponential of the difference to logsumexp."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    return torch.exp(x - torch.logsumexp(x, dim=-1, keepdim=True))
