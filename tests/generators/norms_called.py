"""Child process: norms called by the way that replaces them, interpreted or on a GPU, against float64; prints JSON. Judges nothing.

Usage: TRITON_INTERPRET=1 python -m tests.generators.norms_called
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from gpusolver.engine.generators.module_text import with_ways
from gpusolver.engine.worker.loading import load_path
from gpusolver.problems.module_source import ModuleCall, eager

DEVICE = os.environ.get("PARTS_DEVICE", "cpu")
USER = (
    "import torch\nimport torch.nn.functional as F\n\nclass Model(torch.nn.Module):\n    def forward(self, x, w, b):\n"
    "        return {body}\n\ndef get_init_inputs():\n    return []\n"
)
RMS = "torch.sqrt(torch.mean(x ** 2, dim={dim}, keepdim=True) + 1e-5)"
# (expression, sizes of x, sizes of w and b, operators of the rewritten graph).
NORMS = (
    ("F.layer_norm(x, (37,), w, b)", (5, 3, 37), (37,), ["_norm_of"]),
    ("F.layer_norm(x, (7, 5001), w, b, 1e-3)", (2, 7, 5001), (7, 5001), ["_norm_of"]),
    ("F.layer_norm(x, x.shape[1:])", (2, 3, 47, 1001), (1,), ["_norm_of"]),
    ("F.layer_norm(x, (16385,), w)", (265, 16385), (16385,), ["_norm_of"]),
    ("F.layer_norm(x, (1,), w, b)", (5, 1), (1,), ["_norm_of"]),
    ("torch.relu(F.layer_norm(torch.sigmoid(x), (130,), w, b))", (9, 130), (130,), ["_norm_of"]),
    ("F.group_norm(x, 3, w, b)", (2, 6, 5, 7), (6,), ["_norm_of"]),
    ("F.hardtanh(F.group_norm(F.relu(x), 2, w, b), -0.5, 0.75)", (3, 6, 61, 97), (6,), ["_norm_of"]),
    ("F.hardtanh(F.group_norm(x, 4, w, b), -2.0, 2.0)", (17, 52), (52,), ["_norm_of"]),
    ("F.silu(F.group_norm(F.leaky_relu(x, 0.2), 2))", (3, 6, 5), (1,), ["_norm_of"]),
    ("F.gelu(F.instance_norm(x, weight=w, bias=b))", (3, 6, 9, 11), (6,), ["_norm_of"]),
    ("F.rms_norm(x, (70,), w)", (3, 9, 70), (70,), ["_norm_of"]),
    ("x / " + RMS.format(dim=1), (3, 7, 9, 11), (1,), ["_norm_of"]),
    ("x / " + RMS.format(dim=1) + " * 0.5", (3, 64, 33), (1,), ["_norm_of"]),
    ("x / " + RMS.format(dim=-1), (3, 40001), (1,), ["_norm_of"]),
    ("x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w", (3, 9, 70), (70,), ["_norm_of"]),
    ("w * (torch.rsqrt((x * x).mean((1, 2), keepdim=True)) * x)", (3, 9, 7), (9, 7), ["_norm_of"]),
    ("x / torch.norm(x, p='fro')", (3, 5, 7001), (1,), ["_norm_of"]),
    ("x / torch.norm(x, p=2, dim=1, keepdim=True)", (5, 20011), (1,), ["_norm_of"]),
    ("x / torch.norm(x, p=1, dim=1, keepdim=True)", (5, 6, 3), (1,), ["_norm_of"]),
    ("F.normalize(x, dim=1)", (5, 6, 3), (1,), ["_norm_of"]),
    ("F.normalize(x, dim=-1, eps=8.0)", (5, 60), (1,), ["_norm_of"]),
    ("x / torch.mean(torch.abs(x), dim=1, keepdim=True)", (5, 1237), (1,), ["_norm_of"]),
    ("x / torch.mean(torch.abs(x), dim=(0, 2), keepdim=True)", (5, 6, 3), (1,), None),
    ("x / torch.mean(torch.abs(b), dim=0, keepdim=True)", (5, 6), (6,), None),
    ("x / " + RMS.format(dim=1), (2, 600, 3), (1,), None),
    ("F.layer_norm(x.mT, (9,), w)", (5, 9, 3), (9,), None),
    ("x / torch.norm(x, p=3, dim=1, keepdim=True)", (5, 6), (1,), None),
    ("F.instance_norm(x, w, b.abs() + 1, use_input_stats=False)", (3, 6, 9), (6,), None),
)  # fmt: skip
# Of values around 0, far from 0, of one sign, large and small.
DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "far": lambda x: x + 1000,
    "positive": lambda x: x.abs() + 0.5,
    "large": lambda x: x * 64,
    "small": lambda x: x * 2.0**-12,
}


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    return float((out.double() - expected).norm() / expected.norm())


def norm_row(number: int) -> dict[str, Any]:
    body, sizes, further, operators = NORMS[number]
    path = Path(tempfile.mkdtemp()) / f"norm_{number}.py"
    path.write_text(with_ways(eager(USER.format(body=body), ModuleCall(tensors=3)), ("norms",), "ieee"))
    called = load_path(path, path.stem)
    torch.manual_seed(number)
    drawn, w, b = torch.randn(sizes), torch.randn(further), torch.randn(further)
    errors = {}
    for name, draw in (DRAWS if drawn.numel() < 10**6 else {"far": DRAWS["far"]}).items():
        x, w, b = draw(drawn).to(DEVICE), w.to(DEVICE), b.to(DEVICE)
        scope = {"torch": torch, "F": F}
        expected = eval(body, scope | {"x": x.double(), "w": w.double(), "b": b.double()})
        out, kept = called.run(x, w, b), x.clone()
        same = torch.equal(out, called.run(x, w, b)) and torch.equal(x, kept) and out.shape == expected.shape
        errors[name] = [error(out, expected), error(eval(body, scope | {"x": x, "w": w, "b": b}), expected), same]
    x = drawn.clone().to(DEVICE)
    x.view(-1)[3], x.view(-1)[-2] = float("nan"), float("inf")
    expected = eval(body, {"torch": torch, "F": F, "x": x.double(), "w": w.double(), "b": b.double()})
    out = called.run(x, w, b).double()
    (traced,) = called._TRACES.values()
    names = [getattr(node.target, "__name__", "") for node in traced.graph.nodes if node.op == "call_function"]
    turned = drawn.mT.contiguous().mT.to(DEVICE)
    strided = called.run(turned, w, b)
    return {
        "label": f"{body} {sizes}",
        "errors": errors,
        "not_finite": bool(torch.allclose(out, expected, 1e-5, 1e-5, equal_nan=True)),
        "operators": [name for name in names if "grad" not in name],
        "strided": error(strided, eval(body, {"torch": torch, "F": F, "x": turned.double(), "w": w.double(), "b": b.double()})),
        "expected": operators,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps([norm_row(number) for number in range(len(NORMS))]))
