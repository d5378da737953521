"""The work is a graph recorded by torch.fx and run by its generated code."""

import torch
import torch.fx

PRECISION = "ieee"


def layernorm(x, weight, bias):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + 1e-5) * weight + bias


graph = torch.fx.symbolic_trace(layernorm)


def run(x, weight, bias) -> torch.Tensor:
    return graph(x, weight, bias)
