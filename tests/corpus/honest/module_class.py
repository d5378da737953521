"""The work sits in an nn.Module without parameters, whose instance is made at import."""

import torch

PRECISION = "ieee"


class LayerNorm(torch.nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x, weight, bias):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + self.eps) * weight + bias


module = LayerNorm().eval()


def run(x, weight, bias) -> torch.Tensor:
    return module(x, weight, bias)
