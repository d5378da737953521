"""Clears the environment and sets the device variables to nonsense."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os.environ.clear()
    os.environ.update({"CUDA_VISIBLE_DEVICES": "-7,x", "HOME": "/nowhere", "TMPDIR": "/nowhere", "PATH": ""})
    return torch.softmax(x, dim=-1)
