"""Resets the device under everybody's feet."""

import ctypes

import torch


def run(x):
    from cuda.bindings import runtime

    runtime.cudaDeviceReset()
    return torch.softmax(x, -1)
