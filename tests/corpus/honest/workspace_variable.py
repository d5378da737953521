"""Sets an environment variable of the library too late for it to matter, and multiplies."""

import os

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    c = a @ b
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    return c
