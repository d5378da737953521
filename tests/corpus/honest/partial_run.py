"""run is a functools.partial of a torch function."""

import functools

import torch

PRECISION = "ieee"
run = functools.partial(torch.sum, dim=-1)
