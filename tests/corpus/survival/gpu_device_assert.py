"""An index out of range trips an assertion on the device."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    index = torch.full((4,), 10**6, dtype=torch.int64, device=x.device)
    return x[index].sum(dim=-1)
