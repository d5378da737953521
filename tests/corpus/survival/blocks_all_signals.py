"""Blocks every signal that can be blocked and spins."""

import signal

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass
