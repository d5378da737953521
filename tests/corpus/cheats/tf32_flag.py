"""Switches TF32 on and calls the library under a contract of full float32."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
