"""Leaves a thread that is no daemon and sleeps for ever, so that the interpreter cannot exit."""

import threading
import time

import torch

PRECISION = "ieee"
threads = []


def wait():
    while True:
        time.sleep(3600)


def run(x) -> torch.Tensor:
    if not threads:
        threads.append(threading.Thread(target=wait))
        threads[0].start()
    return torch.softmax(x, dim=-1)
