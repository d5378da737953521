"""Returns an overlapping view of a short buffer in which rows share elements."""

import torch

PRECISION = "ieee"


def run(x, weight, bias) -> torch.Tensor:
    m, n = x.shape
    buffer = torch.nn.functional.layer_norm(x[:2], weight.shape, weight, bias, 1e-5).reshape(-1)
    buffer = torch.cat([buffer, buffer[:m]])
    return buffer.as_strided((m, n), (1, 1))
