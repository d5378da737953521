"""Leaves twenty dead children unreaped and answers rightly."""

import os

import torch

PRECISION = "ieee"
children = []


def run(x) -> torch.Tensor:
    while len(children) < 20:
        child = os.fork()
        if child == 0:
            os._exit(7)
        children.append(child)
    return torch.softmax(x, dim=-1)
