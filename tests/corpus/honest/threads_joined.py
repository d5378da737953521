"""Two threads take half of the rows each and are joined before the call returns."""

import threading

import torch

PRECISION = "ieee"


def part(x, y):
    torch.softmax(x, dim=-1, out=y)


def run(x) -> torch.Tensor:
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    threads = [threading.Thread(target=part, args=(x[rows], y[rows])) for rows in (slice(None, half), slice(half, None))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return y
