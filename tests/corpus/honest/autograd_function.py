"""The work sits in a torch.autograd.Function with a backward that is never called."""

import torch

PRECISION = "ieee"


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, dim=-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(dim=-1, keepdim=True))


def run(x) -> torch.Tensor:
    return Softmax.apply(x)
