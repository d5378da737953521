"""A symmetric system of 1024 unknowns by conjugate gradients, whose step lengths and stop the host reads each time."""

import torch

SIDE, SIDE_CPU = 1024, 48
MOST = 60


def inputs(generator, device):
    """Raw entries and right-hand side; the matrix is 2 I + B + B^T with B = tanh(entries) / (2 sqrt(n))."""
    n = SIDE if device.type == "cuda" else SIDE_CPU
    return torch.randn(n, n, generator=generator, device=device), torch.randn(n, generator=generator, device=device)


def matrix(entries):
    n = entries.shape[0]
    half = torch.tanh(entries) / (2.0 * n**0.5)
    return 2.0 * torch.eye(n, dtype=entries.dtype, device=entries.device) + half + half.T


def reference(entries, right):
    """The library's solver."""
    return torch.linalg.solve(matrix(entries), right)


def run(entries, right):
    """Twice an iteration the host waits for a number."""
    a, x, residual = matrix(entries), torch.zeros_like(right), right.clone()
    direction, square = residual.clone(), torch.dot(residual, residual).item()
    enough = square * 1e-13
    for _ in range(MOST):
        if square <= enough:
            break
        moved = torch.mv(a, direction)
        length = square / torch.dot(direction, moved).item()
        x = x + length * direction
        residual = residual - length * moved
        before, square = square, torch.dot(residual, residual).item()
        direction = residual + (square / before) * direction
    return x
