"""Twenty layers of 128 over a batch of 64: about forty kernels of a few microseconds, so that launching them takes longer than they do."""

import torch
from torch import nn

WIDTH, LAYERS, BATCH = 128, 20, 64


class Model(nn.Module):  # type: ignore[misc]
    """(BATCH, WIDTH) float32 in and out."""

    def __init__(self) -> None:
        super().__init__()
        linears = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
        for linear in linears:  # what PyTorch draws by default fades away over twenty layers
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        self.layers = nn.Sequential(*(layer for linear in linears for layer in (linear, nn.ReLU())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def get_inputs() -> list[torch.Tensor]:
    """One batch."""
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[object]:
    """None."""
    return []
