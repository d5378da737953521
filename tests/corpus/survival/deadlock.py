"""Takes a lock twice and waits for itself."""

import threading

import torch

PRECISION = "ieee"
lock = threading.Lock()


def run(x) -> torch.Tensor:
    with lock:
        with lock:
            return torch.softmax(x, dim=-1)
