"""An LSTM of width 256 over 32 steps of a batch of 16, each gate of each step in operators of its own."""

import torch

STEPS, BATCH, WIDTH = 32, 16, 256
STEPS_CPU, BATCH_CPU, WIDTH_CPU = 6, 2, 16


def inputs(generator, device):
    """Sequence, input weights [width, 4 width], state weights, bias; gates in the order input, forget, cell, output."""
    gpu = device.type == "cuda"
    steps, batch, width = (STEPS, BATCH, WIDTH) if gpu else (STEPS_CPU, BATCH_CPU, WIDTH_CPU)
    x = torch.randn(steps, batch, width, generator=generator, device=device)
    weights = [torch.randn(width, 4 * width, generator=generator, device=device) / width**0.5 for _ in range(2)]
    return x, *weights, torch.randn(4 * width, generator=generator, device=device)


def reference(x, w, u, bias):
    """Inputs of all steps in one product; what is left goes step by step."""
    given = x @ w + bias
    hidden, cell = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    for now in given:
        i, f, g, o = (now + hidden @ u).chunk(4, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
    return hidden


def run(x, w, u, bias):
    """Eight small products and seventeen other operators a step."""
    width = x.shape[2]
    ws, us, bs = (value.split(width, dim=-1) for value in (w, u, bias))
    hidden, cell = torch.zeros_like(x[0]), torch.zeros_like(x[0])
    for step in range(x.shape[0]):
        sums = [x[step] @ ws[gate] + hidden @ us[gate] + bs[gate] for gate in range(4)]
        taken = torch.sigmoid(sums[0]) * torch.tanh(sums[2])
        cell = torch.sigmoid(sums[1]) * cell + taken
        hidden = torch.sigmoid(sums[3]) * torch.tanh(cell)
    return hidden
