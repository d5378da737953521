"""Sends SIGKILL to itself."""

import os
import signal

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    return torch.softmax(x, dim=-1)
