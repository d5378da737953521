"""Writes bytes that are not UTF-8 and a null byte to both outputs and answers rightly."""

import os

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    os.write(1, b"err \xd3\xff\xfe\x00\x80 \xed\xa0\x80\n")
    os.write(2, b"\xc3\x28 \xf8\xa1\xa1\xa1\xa1\n")
    return torch.softmax(x, dim=-1)
