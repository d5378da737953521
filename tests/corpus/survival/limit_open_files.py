"""Sets the limit of open files to zero and answers rightly."""

import resource

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    return torch.softmax(x, dim=-1)
