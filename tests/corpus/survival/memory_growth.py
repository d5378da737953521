"""Switches the collector off and grows by 64 MB a call in reference circles, up to 1 GB."""

import gc

import torch

PRECISION = "ieee"
calls = 0


def run(x) -> torch.Tensor:
    global calls
    gc.disable()
    calls += 1
    if calls <= 16:
        ring = [bytearray(b"x") * (64 << 20)]
        ring.append(ring)
    return torch.softmax(x, dim=-1)
