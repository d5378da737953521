"""Asks for an exabyte."""

import torch


def run(x):
    return torch.empty(1 << 60)
