"""Raises an exception whose text holds undecodable bytes as surrogates."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    raise ValueError(b"ptxas: \xd3\xff bad".decode("utf-8", "surrogateescape"))
