"""Replaces its process by /bin/sleep, which keeps process id and descriptors."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    for fd in range(0, 32):
        try:
            os.set_inheritable(fd, True)
        except OSError:
            continue
    os.execv("/bin/sleep", ["sleep", "600"])
