"""Right answers, and a handler that sleeps for ever when the interpreter exits."""

import atexit
import time

import torch

PRECISION = "ieee"


def hang():
    while True:
        time.sleep(3600)


atexit.register(hang)


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
