"""Right answers, but the counters of the time module run a hundred times too slow."""

import time

import torch

PRECISION = "ieee"


def slowed(clock, unit):
    start = clock()
    return lambda: start + unit((clock() - start) / 100)


for name, unit in (("perf_counter", float), ("perf_counter_ns", int), ("monotonic", float), ("monotonic_ns", int)):
    setattr(time, name, slowed(getattr(time, name), unit))


def run(x) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
