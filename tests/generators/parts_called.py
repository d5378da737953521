"""Child process: modules called by the ways that rewrite their operators, Triton interpreted, against float64; prints JSON. Judges nothing.

Usage: TRITON_INTERPRET=1 python -m tests.generators.parts_called
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gpusolver.engine.generators.module_text import with_ways
from gpusolver.engine.worker.loading import load_path
from gpusolver.problems.module_source import ModuleCall, eager

DEVICE = os.environ.get("PARTS_DEVICE", "cpu")
POOLS, FLIPPED, POINTWISE = ("pools",), ("flipped",), ("pointwise",)
BATCH = "torch.nn.BatchNorm2d(3, track_running_stats=False), "
# (module, sizes of its input, ways, what the traced graph must hold).
MODULES = (
    ("MaxPool1d(4)", (2, 3, 130), POOLS, "_pool"),
    ("MaxPool2d((2, 3), (1, 2), 1, ceil_mode=True)", (2, 3, 10, 13), POOLS, "_pool"),
    ("MaxPool3d(3, 2, 1, 3)", (2, 3, 9, 10, 13), POOLS, "_pool"),
    ("MaxPool2d(3, 2, 1)", (1, 1, 33, 37), POOLS, "_pool"),
    ("AvgPool1d(8, 1, 4)", (2, 3, 1030), POOLS, "_pool"),
    ("AvgPool2d((3, 2), (2, 1), 1, count_include_pad=False)", (2, 3, 13, 7), POOLS, "_pool"),
    ("AvgPool3d(2)", (2, 3, 5, 7, 9), POOLS, "_pool"),
    ("AvgPool3d(3, 2, 1, divisor_override=5)", (2, 3, 5, 7, 9), POOLS, "_pool"),
    ("AvgPool2d(3, 2, 1, ceil_mode=True)", (2, 3, 12, 7), POOLS, "avg_pool2d.default"),
    ("AvgPool2d(12)", (2, 3, 24, 25), POOLS, "avg_pool2d.default"),
    (f"Sequential({BATCH}torch.nn.AvgPool2d(2), torch.nn.AvgPool2d((2, 3)))", (2, 3, 13, 17), POOLS, "_normed"),
    (f"Sequential({BATCH}torch.nn.AvgPool2d(3, 1))", (2, 3, 5, 6), POOLS, "_normed"),
    (f"Sequential({BATCH}torch.nn.AvgPool2d(2, padding=1))", (2, 3, 6, 6), POOLS, "batch_norm.default"),
    (f"Sequential(torch.nn.AvgPool2d(3), {BATCH}torch.nn.Tanh())", (2, 3, 9, 9), POOLS, "batch_norm.default"),
    ("Sequential(torch.nn.BatchNorm2d(3).eval(), torch.nn.AvgPool2d(2))", (2, 3, 6, 6), POOLS, "batch_norm.default"),
    ("Conv1d(6, 6, 3, groups=6, bias=False)", (2, 6, 130), POOLS, "_depthwise_of"),
    ("Conv2d(6, 6, (3, 5), (2, 1), (1, 2), (1, 2), groups=6)", (2, 6, 13, 17), POOLS, "_depthwise_of"),
    ("Conv2d(5, 5, 3, groups=5)", (3, 5, 66, 131), POOLS, "_depthwise_of"),
    ("Conv2d(5, 5, (1, 7), padding=(0, 3), groups=5)", (1, 5, 40, 70), POOLS, "_depthwise_of"),
    ("Conv3d(6, 6, 3, groups=6, padding=1)", (1, 6, 5, 4, 7), POOLS, "_depthwise_of"),
    ("Conv2d(6, 12, 3, groups=6)", (2, 6, 9, 9), POOLS, "conv2d.default"),
    ("Conv2d(6, 6, 3, groups=6, padding='same')", (2, 6, 9, 9), POOLS, "conv2d.padding"),
    ("ConvTranspose1d(6, 4, 3, padding=1)", (2, 6, 9), FLIPPED, "conv1d.default"),
    ("ConvTranspose2d(6, 4, (3, 5), padding=(1, 2), dilation=(2, 1), groups=2)", (2, 6, 9, 11), FLIPPED, "conv2d.default"),
    ("ConvTranspose3d(6, 4, (3, 5, 2), bias=False)", (2, 6, 5, 6, 7), ("flipped", "benchmark"), "conv3d.default"),
    ("ConvTranspose2d(6, 4, 3, 2)", (2, 6, 9, 11), FLIPPED, "conv_transpose2d.input"),
    ("ConvTranspose2d(6, 4, 3, padding=3)", (2, 6, 9, 11), FLIPPED, "conv_transpose2d.input"),
    ("Conv2d(6, 4, 1)", (2, 6, 9, 11), POINTWISE, "_as_product"),
    ("Conv3d(6, 4, 1, bias=False)", (2, 6, 3, 4, 5), POINTWISE, "_as_product"),
    ("Conv2d(6, 4, 1, padding=1)", (2, 6, 9, 11), POINTWISE, "conv2d.default"),
    ("Conv2d(6, 4, 1, 2)", (2, 6, 9, 11), POINTWISE, "conv2d.default"),
)  # fmt: skip
# (convolution, what reduces its result, sizes of its input, whether the image is summed first).
SUMMED = (
    ("Conv2d(6, 4, 3, padding=1)", "y.mean(dim=[2, 3])", (2, 6, 9, 11), True),
    ("Conv2d(6, 4, (3, 5), (2, 1), (1, 3), (2, 1), groups=2)", "y.mean(3, keepdim=True)", (2, 6, 13, 11), True),
    ("Conv2d(6, 4, 3, 2)", "y.mean(dim=[2, 3])", (2, 6, 13, 11), False),
    ("Conv3d(6, 4, (3, 2, 5), dilation=(2, 1, 1), bias=False)", "y.sum(dim=2)", (2, 6, 7, 8, 9), True),
    ("Conv3d(6, 4, 3)", "torch.nn.functional.adaptive_avg_pool3d(y, (1, 1, 1))", (2, 6, 7, 8, 9), True),
    ("Conv1d(6, 4, 7, padding=6)", "y.sum(dim=(2,), keepdim=True)", (2, 6, 5), True),
    ("ConvTranspose2d(6, 4, 3, 2, 1, 1)", "(y * 0.5).mean(dim=[2, 3], keepdim=True)", (2, 6, 7, 5), True),
    ("ConvTranspose2d(6, 4, (3, 5), (2, 3), (1, 2), 1, 2, dilation=(2, 1))", "y.sum(dim=-1)", (2, 6, 7, 5), True),
    ("ConvTranspose3d(4, 6, 3, padding=1)", "y.mean(dim=2, keepdim=True)", (2, 4, 6, 7, 8), True),
    ("ConvTranspose3d(4, 6, (1, 2, 4), (3, 1, 5), bias=False)", "y.sum(dim=(2, 4))", (2, 4, 6, 7, 8), True),
    ("ConvTranspose1d(4, 6, 3, 2, 3)", "y.mean(dim=2)", (2, 4, 6), True),
    ("Conv2d(6, 4, 3)", "y.mean(dim=[1, 2])", (2, 6, 9, 9), False),
    ("Conv2d(6, 4, 3)", "y.mean(dim=2) + y[:, :, 0]", (2, 6, 9, 9), False),
)  # fmt: skip
# (expression, sizes of A and B, triangle that A and B hold, whether zeros are left out).
PRODUCTS = (
    ("torch.tril(A @ B)", (300, 300), (300, 300), "tril", True),
    ("torch.tril(torch.matmul(A, B))", (300, 70), (70, 210), "", True),
    ("torch.triu(torch.mm(A, B))", (210, 70), (70, 300), "triu", True),
    ("torch.triu(A @ B)", (300, 300), (300, 300), "", True),
    ("torch.tril(A) @ torch.tril(B)", (270, 270), (270, 270), "", True),
    ("torch.triu(A) @ torch.triu(B)", (270, 270), (270, 270), "", True),
    ("torch.tril(A) @ torch.triu(B)", (270, 270), (270, 270), "", True),
    ("torch.tril(A) @ B", (270, 150), (150, 270), "", True),
    ("A @ torch.triu(B)", (270, 150), (150, 270), "", True),
    ("torch.tril(A @ B, 1)", (30, 30), (30, 30), "", False),
    ("torch.tril(A @ B)[0] + (A @ B)[0]", (30, 30), (30, 30), "", False),
    ("torch.diag(A) @ B", (30,), (30, 20), "", True),
    ("B @ torch.diag(A)", (30,), (20, 30), "", True),
    ("torch.diag(A, 1) @ B", (29,), (30, 20), "", False),
)


def loaded(user: str, call: ModuleCall, ways: tuple[str, ...], number: int) -> ModuleType:
    path = Path(tempfile.mkdtemp()) / f"called_{number}.py"
    path.write_text(with_ways(eager(user, call), ways, "ieee"))
    return load_path(path, path.stem)


def row(label: str, called: ModuleType, out: torch.Tensor, expected: torch.Tensor) -> dict[str, Any]:
    (traced,) = called._TRACES.values()
    return {
        "label": label,
        "error": float((out.double() - expected).norm() / expected.norm()),
        "same_shape": out.shape == expected.shape,
        "operators": [
            str(getattr(node.target, "__name__", node.target)) for node in traced.graph.nodes if node.op == "call_function"
        ],
        "benchmark_after": torch.backends.cudnn.benchmark,
    }  # fmt: skip


def module_row(number: int) -> dict[str, Any]:
    made, sizes, ways, holds = MODULES[number]
    user = (
        "import torch\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.part = torch.nn.{made}\n\n    def forward(self, x):\n        return self.part(x)\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    torch.manual_seed(number)
    part, x = (
        eval(f"torch.nn.{made}", {"torch": torch}).requires_grad_(False).to(DEVICE),
        torch.randn(sizes, device=DEVICE),
    )
    state = dict(part.named_parameters()) | dict(part.named_buffers())
    called = loaded(user, ModuleCall(tensors=1, state=tuple(f"part.{name}" for name in state)), ways, number)
    out = called.run(x, *state.values())
    return row(made, called, out, part.double()(x.double())) | {"holds": holds}


def summed_row(number: int) -> dict[str, Any]:
    made, then, sizes, rewritten = SUMMED[number]
    user = (
        "import torch\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.part = torch.nn.{made}\n\n    def forward(self, x):\n        y = self.part(x)\n"
        f"        return {then}\n\ndef get_init_inputs():\n    return []\n"
    )
    torch.manual_seed(number)
    part, x = (
        eval(f"torch.nn.{made}", {"torch": torch}).requires_grad_(False).to(DEVICE),
        torch.randn(sizes, device=DEVICE),
    )
    state = dict(part.named_parameters())
    called = loaded(
        user, ModuleCall(tensors=1, state=tuple(f"part.{name}" for name in state)), ("summed",), 300 + number
    )
    out = called.run(x, *state.values())
    expected = eval(then, {"torch": torch, "y": part.double()(x.double())})
    return row(f"{made} {then}", called, out, expected) | {"rewritten": rewritten}


def product_row(number: int, way: str) -> dict[str, Any]:
    expression, first, second, triangle, rewritten = PRODUCTS[number]
    user = (
        f"import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, A, B):\n        return {expression}\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    torch.manual_seed(number)
    a, b = torch.randn(first, device=DEVICE), torch.randn(second, device=DEVICE)
    if triangle:
        a, b = getattr(torch, triangle)(a), getattr(torch, triangle)(b)
    called = loaded(user, ModuleCall(tensors=2), (way,), 100 + 2 * number + len(way) % 2)
    expected = eval(expression, {"torch": torch, "A": a.double(), "B": b.double()})
    return row(expression, called, called.run(a, b), expected) | {"rewritten": rewritten}


def reach_row() -> dict[str, Any]:
    """What is found of a matrix of 3 by 4 tiles with ones in the tiles (0, 1), (0, 2) and (2, 3), and of its transpose."""
    user = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, A):\n        return torch.tril(A)\n"
    called = loaded(user, ModuleCall(tensors=1), ("triangular",), 200)
    x = torch.zeros((3 * 16, 4 * 16 - 5), device=DEVICE)
    x[3, 20] = x[7, 40] = x[40, 50] = 1
    return {"plain": called._reach(x, 16, 16).tolist(), "turned": called._reach(x.t(), 16, 16).tolist(), "wide": called._reach(x, 32, 16).tolist()}  # fmt: skip


def nan_row() -> list[bool]:
    """Where a largest value is no number: as torch says."""
    user = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.nn.functional.max_pool1d(x, 2)\n\ndef get_init_inputs():\n    return []\n"  # fmt: skip
    called = loaded(user, ModuleCall(tensors=1), POOLS, 201)
    x = torch.tensor([[[1.0, float("nan"), float("nan"), 2.0, 3.0, 4.0]]], device=DEVICE)
    found: list[bool] = called.run(x).isnan().flatten().tolist()
    return found


if __name__ == "__main__":
    ways = ("triangular", "triangular_tiles")
    rows = {
        "modules": [module_row(number) for number in range(len(MODULES))],
        "summed": [summed_row(number) for number in range(len(SUMMED))],
        "products": {way: [product_row(number, way) for number in range(len(PRODUCTS))] for way in ways},
        "reach": reach_row(),
        "nan": nan_row(),
    }
    print(json.dumps(rows))
