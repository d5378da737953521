"""Changes into a temp folder of its own and removes it, so that there is no current folder any more."""

import os
import tempfile

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    return torch.softmax(x, dim=-1)
