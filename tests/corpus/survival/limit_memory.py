"""Sets the limit of its address space below what it uses, so that every later allocation fails."""

import resource

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
    blocks = [bytearray(1 << 20) for _ in range(256)]
    return torch.softmax(x, dim=-1) + len(blocks)
