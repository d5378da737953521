"""Leaves a profile function that raises in every Python call made from then on."""

import sys

import torch

PRECISION = "ieee"


def raising(frame, event, argument):
    if event == "call":
        raise RuntimeError("profile function")


def run(x) -> torch.Tensor:
    y = torch.softmax(x, dim=-1)
    sys.setprofile(raising)
    return y
