"""Takes GPU memory in pieces of a gigabyte until the device has no more, and lets the exception go up."""

import torch

PRECISION = "ieee"
kept = []


def run(x) -> torch.Tensor:
    while True:
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))
