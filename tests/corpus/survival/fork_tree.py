"""Forks a tree of twenty children that sleep for a minute, and waits for none."""

import os
import time

import torch

PRECISION = "ieee"
calls = 0


def run(x) -> torch.Tensor:
    global calls
    calls += 1
    if calls == 1:
        for _ in range(4):
            if os.fork() == 0:
                for _ in range(4):
                    if os.fork() == 0:
                        break
                time.sleep(60)
                os._exit(0)
    return torch.softmax(x, dim=-1)
