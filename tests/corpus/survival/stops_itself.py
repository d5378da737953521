"""Sends SIGSTOP to itself and hangs without using time."""

import os
import signal

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os.kill(os.getpid(), signal.SIGSTOP)
    return torch.softmax(x, dim=-1)
