"""Raises KeyboardInterrupt inside the call, as if a person had pressed Ctrl-C."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    raise KeyboardInterrupt
