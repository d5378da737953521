"""Prints lines to standard output and standard error in every call, some of them in JSON and some not ASCII."""

import sys

import torch

PRECISION = "ieee"
print("loading σ kernel")


def run(x) -> torch.Tensor:
    print('{"ok": false, "note": "only talk"}')
    print("σ of", tuple(x.shape), file=sys.stderr)
    sys.stdout.flush()
    return torch.sigmoid(x)
