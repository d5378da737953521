"""65536 linear systems of 8 x 8, diagonally dominant, by Gaussian elimination in batched operators."""

import torch

SYSTEMS, SYSTEMS_CPU = 65536, 64
SIDE = 8


def inputs(generator, device):
    """Raw entries and right-hand sides; the matrix is 8 I + tanh(entries) / 2, whatever they are."""
    n = SYSTEMS if device.type == "cuda" else SYSTEMS_CPU
    entries = torch.randn(n, SIDE, SIDE, generator=generator, device=device)
    return entries, torch.randn(n, SIDE, generator=generator, device=device)


def matrix(entries):
    eye = torch.eye(SIDE, dtype=entries.dtype, device=entries.device)
    return 8.0 * eye + 0.5 * torch.tanh(entries)


def reference(entries, right):
    """The library's batched solver."""
    return torch.linalg.solve(matrix(entries), right)


def run(entries, right):
    """Elimination and back substitution, step by step over the whole batch."""
    a = torch.cat([matrix(entries), right.unsqueeze(-1)], dim=-1)
    for k in range(SIDE - 1):
        factor = a[:, k + 1 :, k : k + 1] / a[:, k : k + 1, k : k + 1]
        a[:, k + 1 :] = a[:, k + 1 :] - factor * a[:, k : k + 1]
    x = torch.zeros_like(right)
    for k in reversed(range(SIDE)):
        known = (a[:, k, k + 1 : SIDE] * x[:, k + 1 :]).sum(dim=-1)
        x[:, k] = (a[:, k, SIDE] - known) / a[:, k, k]
    return x
