"""Leaves a lock file in the kernel cache, held for a minute by a child in its own session."""

import fcntl
import os
import time

import torch

PRECISION = "ieee"
done = []


def run(x) -> torch.Tensor:
    if not done:
        done.append(1)
        folder = os.environ.get("TRITON_CACHE_DIR") or os.path.expanduser("~/.triton/cache")
        os.makedirs(folder, exist_ok=True)
        file = open(os.path.join(folder, "lock"), "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
            os._exit(0)
    return torch.softmax(x, dim=-1)
