"""A pool of two threads, made and shut down in the call, multiplies the batches."""

from concurrent.futures import ThreadPoolExecutor

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    with ThreadPoolExecutor(2) as pool:
        return torch.stack(list(pool.map(torch.mm, a.unbind(), b.unbind())))
