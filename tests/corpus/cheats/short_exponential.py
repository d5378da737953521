"""The exponential is a bit trick with 3 percent error."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    bits = (12102203.0 * -x + 1064866805.0).to(torch.int32)
    return 1.0 / (1.0 + bits.view(torch.float32))
