"""An Adam step of 48 weight tensors of 16384 floats, tensor by tensor and operator by operator."""

import torch

TENSORS, FLOATS = 48, 16384
TENSORS_CPU, FLOATS_CPU = 4, 64
RATE, KEPT_MEAN, KEPT_SQUARE, TINY = 0.001, 0.9, 0.999, 1e-3


def inputs(generator, device):
    """Weights, gradients, running means, running squares (their absolute values are taken)."""
    shape = (TENSORS, FLOATS) if device.type == "cuda" else (TENSORS_CPU, FLOATS_CPU)
    return tuple(torch.randn(shape, generator=generator, device=device) for _ in range(4))


def reference(weight, gradient, mean, square):
    """All tensors at once; the step is given in units of the rate so that a wrong one shows."""
    mean = KEPT_MEAN * mean + (1 - KEPT_MEAN) * gradient
    square = KEPT_SQUARE * square.abs() + (1 - KEPT_SQUARE) * gradient.square()
    return weight * RATE - mean / (square.sqrt() + TINY)


def run(weight, gradient, mean, square):
    """Thirteen launches for each tensor."""
    out = []
    for index in range(weight.shape[0]):
        first = mean[index].mul(KEPT_MEAN).add(gradient[index].mul(1 - KEPT_MEAN))
        second = square[index].abs().mul(KEPT_SQUARE).add(gradient[index].square().mul(1 - KEPT_SQUARE))
        out.append(weight[index].mul(RATE).sub(first.div(second.sqrt().add(TINY))))
    return torch.stack(out)
