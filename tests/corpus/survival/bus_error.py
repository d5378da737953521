"""Reads a mapped page beyond the end of a file it made, which is a bus error."""

import mmap
import tempfile

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        return torch.softmax(x, dim=-1) * page[0]
