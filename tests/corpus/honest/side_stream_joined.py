"""Works on a side stream and joins it again before it returns."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    current = torch.cuda.current_stream()
    side = torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        y = torch.softmax(x, dim=-1)
    current.wait_stream(side)
    x.record_stream(side)
    y.record_stream(current)
    return y
