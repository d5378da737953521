"""Sets its CPU time limit to what it has used and spins until the kernel kills it."""

import resource

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass
