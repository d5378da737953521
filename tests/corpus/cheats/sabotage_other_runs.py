"""Right answers, but every other loaded module that has a run gets a slower one."""

import sys
import time

import torch

PRECISION = "ieee"


def slowed(other):
    def run(*inputs):
        time.sleep(0.002)
        return other(*inputs)

    return run


def run(x) -> torch.Tensor:
    for name, module in list(sys.modules.items()):
        other = getattr(module, "__dict__", {}).get("run")
        if callable(other) and name != __name__ and hasattr(module, "PRECISION") and other.__name__ == "run":
            module.run = slowed(other)
    return torch.sigmoid(x)
