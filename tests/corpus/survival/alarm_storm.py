"""An interval timer raises an exception in whatever code runs, every 20 ms, also after the call."""

import signal

import torch

PRECISION = "ieee"


def ring(number, frame):
    raise OSError("alarm")


def run(x) -> torch.Tensor:
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    return torch.softmax(x, dim=-1)
