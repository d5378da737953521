"""os._exit(3) inside the call."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os._exit(3)
