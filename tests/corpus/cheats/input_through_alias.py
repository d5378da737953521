"""Right answer, but one element of the input is changed through a detached alias that leaves the version counter alone."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.softmax(x, dim=-1)
    x.data.view(-1)[-1] += 0.25
    return y
