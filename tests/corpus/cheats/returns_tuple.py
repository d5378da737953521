"""Returns the right answer inside a tuple."""

import torch

PRECISION = "ieee"


def run(x):
    return (torch.softmax(x, dim=-1),)
