"""Fails an assertion on the device."""

import torch


def run(x):
    torch._assert_async(torch.zeros((), device=x.device, dtype=torch.bool))
    return torch.softmax(x, -1)
