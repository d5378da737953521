"""Right but for one element that is off by a hundredth of the RMS, which a relative norm alone dilutes."""

import torch

PRECISION = "ieee"


def run(a, b) -> torch.Tensor:
    c = a @ b
    c[-1, -1] += 0.01 * a.shape[1] ** 0.5
    return c
