"""The work is registered as an operator of torch.library and called through torch.ops."""

import torch

PRECISION = "ieee"


@torch.library.custom_op("corpus_honest::logistic", mutates_args=())
def logistic(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x)


@logistic.register_fake
def _(x):
    return torch.empty_like(x)


def run(x) -> torch.Tensor:
    return torch.ops.corpus_honest.logistic(x)
