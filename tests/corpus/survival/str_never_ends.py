"""Raises an exception whose text takes for ever to be made."""

import time

import torch

PRECISION = "ieee"


class Slow(Exception):
    def __str__(self):
        while True:
            time.sleep(3600)

    __repr__ = __str__


def run(x) -> torch.Tensor:
    raise Slow()
