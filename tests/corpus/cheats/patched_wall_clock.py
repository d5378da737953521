"""Right answers, but time.time steps back by two seconds at every second reading."""

import time

import torch

PRECISION = "ieee"
true_time, readings = time.time, 0


def stepping():
    global readings
    readings += 1
    return true_time() - 2.0 * (readings % 2)


time.time = stepping
time.time_ns = lambda: int(stepping() * 1e9)


def run(x) -> torch.Tensor:
    return torch.sigmoid(x)
