"""Reads clocks around its work and keeps the durations, patching nothing."""

import time

import torch

PRECISION = "ieee"
durations = []


def run(x) -> torch.Tensor:
    start = time.perf_counter_ns()
    y = torch.softmax(x, dim=-1)
    durations.append(time.perf_counter_ns() - start)
    return y
