"""Lets faulthandler's timer print all stacks and end the process after half a second."""

import faulthandler
import time

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    faulthandler.dump_traceback_later(0.5, exit=True)
    time.sleep(5)
    return torch.softmax(x, dim=-1)
