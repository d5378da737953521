"""Two right answers, then sleep for ever."""

import time

import torch

PRECISION = "ieee"
calls = 0


def run(x) -> torch.Tensor:
    global calls
    calls += 1
    while calls > 2:
        time.sleep(3600)
    return x.sum(dim=-1)
