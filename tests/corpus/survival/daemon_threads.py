"""Leaves eight daemon threads that never end and hold the interpreter lock in turn."""

import threading

import torch

PRECISION = "ieee"
threads = []


def spin():
    while True:
        sum(range(1000))


def run(x) -> torch.Tensor:
    while len(threads) < 8:
        threads.append(threading.Thread(target=spin, daemon=True))
        threads[-1].start()
    return torch.softmax(x, dim=-1)
