"""16 M floats with every run of 1024 reversed and turned round a drawn way, by a table of 64-bit places."""

import torch

ITEMS, RUN = 16777216, 1024
ITEMS_CPU, RUN_CPU = 4096, 64


def inputs(generator, device):
    """The floats and the places (int64), which follow from one drawn offset."""
    n, run_length = (ITEMS, RUN) if device.type == "cuda" else (ITEMS_CPU, RUN_CPU)
    place = torch.arange(n, device=device)
    offset = torch.randint(0, run_length, (1,), generator=generator, device=device)
    turned = (run_length - 1 - place % run_length + offset) % run_length
    return torch.randn(n, generator=generator, device=device), place // run_length * run_length + turned


def reference(x, place):
    """Take and add one."""
    return torch.take(x, place) + 1.0


def run(x, place):
    """The table is twice as large as what it moves, and the sum is a pass of its own."""
    return x.gather(0, place).add(1.0)
