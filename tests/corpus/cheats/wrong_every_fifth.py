"""Every fifth call forgets the bias."""

import torch

PRECISION = "ieee"
calls = 0


def run(x, weight, bias) -> torch.Tensor:
    global calls
    calls += 1
    y = torch.nn.functional.layer_norm(x, weight.shape, weight, None, 1e-5)
    return y if calls % 5 == 0 else y + bias
