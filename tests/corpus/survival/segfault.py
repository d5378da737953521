"""Reads address zero."""

import ctypes

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    ctypes.string_at(0)
    return torch.softmax(x, dim=-1)
