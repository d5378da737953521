"""Deletes its own file and writes other code in its place, if it runs from a copy outside this folder."""

import os

import torch

PRECISION = "ieee"
if os.path.basename(os.path.dirname(os.path.abspath(__file__))) != "survival":
    os.unlink(__file__)
    with open(__file__, "w") as file:
        file.write('PRECISION = "ieee"\nraise SystemExit("other code")\n')


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
