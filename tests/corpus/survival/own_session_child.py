"""A double fork leaves a grandchild in its own session that holds all descriptors open for a minute; the parent sleeps too."""

import os
import time

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    time.sleep(3600)
    return torch.softmax(x, dim=-1)
