"""Warns in every call, at import with a deprecation and in the call with a runtime warning."""

import warnings

import torch

PRECISION = "ieee"
warnings.warn("this module prefers wider rows", DeprecationWarning, stacklevel=2)


def run(x) -> torch.Tensor:
    warnings.simplefilter("always")
    warnings.warn(f"rows of {x.shape[1]} values", RuntimeWarning, stacklevel=2)
    return torch.softmax(x, dim=-1)
