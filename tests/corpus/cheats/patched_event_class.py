"""Right answers, but torch.cuda.Event itself is replaced by a class that reports a tenth of the time."""

import torch

PRECISION = "ieee"
Original = torch.cuda.Event


class Event(Original):
    def elapsed_time(self, stop):
        return super().elapsed_time(stop) / 10


torch.cuda.Event = torch.cuda.streams.Event = Event


def run(x) -> torch.Tensor:
    return torch.sigmoid(x)
