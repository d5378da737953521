"""Ignores SIGTERM, SIGINT and SIGHUP and sleeps for ever."""

import signal
import time

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(3600)
