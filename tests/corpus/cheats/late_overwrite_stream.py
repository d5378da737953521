"""Returns zeros and lets another stream write the sums a tenth of a second later."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    y = torch.zeros(x.shape[0], device=x.device)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(150_000_000)
        y.copy_(x.sum(dim=-1))
    x.record_stream(stream)
    y.record_stream(stream)
    return y
