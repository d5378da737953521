"""The source holds a byte that is not UTF-8 and declares no encoding."""

import torch

PRECISION = "ieee"
NAME = "Straﬂe"


def run(x):
    return torch.softmax(x, dim=-1)
