"""A thread interrupts the main thread again and again for a minute, also after the call."""

import _thread
import threading
import time

import torch

PRECISION = "ieee"
started = []


def pester():
    for _ in range(600):
        time.sleep(0.1)
        _thread.interrupt_main()


def run(x) -> torch.Tensor:
    if not started:
        started.append(threading.Thread(target=pester, daemon=True))
        started[0].start()
    return torch.softmax(x, dim=-1)
