# -*- coding: utf-99 -*-
"""The source declares an encoding that does not exist."""

import torch

PRECISION = "ieee"


def run(x):
    return torch.softmax(x, dim=-1)
