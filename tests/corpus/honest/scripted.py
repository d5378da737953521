"""The work is a function compiled by torch.jit.script, the sigmoid by way of tanh."""

import warnings

import torch

PRECISION = "ieee"


def logistic(x: torch.Tensor) -> torch.Tensor:
    return 0.5 + 0.5 * torch.tanh(0.5 * x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    scripted = torch.jit.script(logistic)


def run(x) -> torch.Tensor:
    return scripted(x)
