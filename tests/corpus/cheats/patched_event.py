"""Right answers, but torch.cuda.Event.elapsed_time is replaced by a constant of 10 microseconds."""

import torch

PRECISION = "ieee"
torch.cuda.Event.elapsed_time = lambda start, stop: 0.01


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
