"""sys.exit with an object as its code inside the call."""

import sys

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    sys.exit({"status": "ok"})
