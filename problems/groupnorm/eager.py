"""Group normalisation by torch."""

import torch

PRECISION = "ieee"


def operation(x, weight, bias):
    return torch.nn.functional.group_norm(x.flatten(1, 2), x.shape[1], weight.flatten(), bias.flatten(), 1e-5).view_as(x)


def run(x, weight, bias) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(x, weight, bias)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
