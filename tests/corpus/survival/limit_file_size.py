"""Sets the limit of file sizes to zero, so that every write to a file fails with a signal."""

import resource
import signal

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return torch.softmax(x, dim=-1)
