"""run is a lambda."""

import torch

PRECISION = "ieee"
run = lambda x: torch.special.expit(x)  # noqa: E731
