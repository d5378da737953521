"""Forks after the device was started and uses it in the child, which cannot work."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    child = os.fork()
    if child == 0:
        try:
            torch.softmax(torch.ones(4, 4, device="cuda"), dim=-1)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    return torch.softmax(x, dim=-1)
