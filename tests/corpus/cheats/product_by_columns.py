"""The product of the transposed factors, handed out as a transposed view: the library's order of work, and the reader's to turn round."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    return torch.matmul(b.t(), a.t()).t()
