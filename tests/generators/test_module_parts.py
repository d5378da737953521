"""Operators of a module replaced by others: right at small and awkward sizes against float64, and replaced where they fit alone."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from gpusolver.engine.generators.module_text import ways_of, with_ways
from gpusolver.engine.local import LocalExecutor
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Prober, on_card

from ..importing.gating import gated

ROOT = Path(__file__).parents[2]
LIMIT = 1e-6
"""Of the relative L2 error: float32 sums of up to 300 products."""


HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
SEPARABLE = (
    HEAD
    + '''
class Model(nn.Module):
    """One filter a channel, a norm of the batch, an average, one pixel by one, a transposed convolution, a largest value, a mean."""
    def __init__(self, channels):
        super().__init__()
        self.each = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.norm = nn.BatchNorm2d(channels)
        self.pool = nn.AvgPool2d(2)
        self.across = nn.Conv2d(channels, 8, 1)
        self.back = nn.ConvTranspose2d(8, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        x = self.pool(self.norm(self.each(x)))
        x = F.max_pool2d(self.back(torch.tanh(self.across(x))), 3, 2, 1)
        return self.last(x).mean(dim=[2, 3])

def get_inputs():
    return [torch.rand(2, 6, 10, 13)]

def get_init_inputs():
    return [6]
'''
)
TRIANGLES = (
    HEAD
    + '''
class Model(nn.Module):
    """A product of two lower triangles."""
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))

def get_inputs():
    return [torch.tril(torch.rand(150, 150)), torch.tril(torch.rand(150, 150))]

def get_init_inputs():
    return []
'''
)
REDUCED = (
    HEAD
    + '''
class Model(nn.Module):
    """Norms, sums of a product, a softmax along channels, a matrix times a vector."""
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, A, B):
        sums = torch.cumsum(self.norm(A) * (A > 0.5), dim=-1)
        wide = torch.sigmoid(torch.softmax(A.view(8, 8, -1), dim=1)).view(A.shape)
        wide = wide / torch.sqrt(torch.mean(wide ** 2, dim=0, keepdim=True) + 1e-5)
        return 0.1 * sums + wide + torch.matmul(A, B)

def get_inputs():
    return [torch.rand(64, 1030), torch.rand(1030, 1)]

def get_init_inputs():
    return [1030]
'''
)
OFFERED = {
    "REDUCED": (("rows",), ("norms",), ("matvec",), ("norms", "matvec", "rows", "in_place")),
    "SEPARABLE": (
        ("benchmark",), ("pools",), ("flipped",), ("pointwise",), ("summed",),
        ("channels_last", "benchmark"), ("summed", "flipped", "pools", "pointwise", "in_place", "benchmark"),
    ),
    "TRIANGLES": (("triangular",), ("triangular_tiles",)),
}  # fmt: skip


@functools.cache
def called(device: str) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PARTS_DEVICE": device}
    if device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "tests.generators.parts_called"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


on_both = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.torch_cpu), pytest.param("cuda", marks=pytest.mark.gpu)]
)


@on_both
def test_pools_and_convolutions_are_right_and_replaced_where_they_fit(device: str) -> None:
    rows = called(device)["modules"]
    assert len(rows) == 31
    for row in rows:
        assert row["same_shape"] and row["error"] < LIMIT, row
        assert any(name.endswith(row["holds"]) for name in row["operators"]), row
        assert row["benchmark_after"] is False, row


@on_both
@pytest.mark.parametrize("way", ["triangular", "triangular_tiles"])
def test_products_of_triangles_are_right_and_leave_out_zeros(device: str, way: str) -> None:
    rows = called(device)["products"][way]
    assert len(rows) == 14
    for row in rows:
        assert row["same_shape"] and row["error"] < LIMIT, row
        assert any("matmul" in name or "mm" in name for name in row["operators"]) is not row["rewritten"], row


@on_both
def test_sums_over_a_convolution_are_those_of_sums_of_the_image(device: str) -> None:
    rows = called(device)["summed"]
    assert len(rows) == 13
    for row in rows:
        assert row["same_shape"] and row["error"] < LIMIT, row
        assert ("_sum_of" in row["operators"]) is row["rewritten"], row


@on_both
def test_zero_tiles_are_found(device: str) -> None:
    # (one more than the last tile with a value, number of tiles from the first one with a value): 4 columns of tiles, then 3 rows.
    assert called(device)["reach"] == {
        "plain": [[3, 3], [0, 0], [4, 1]],
        "turned": [[0, 0], [1, 3], [1, 3], [3, 1]],
        "wide": [[3, 3], [4, 1]],
    }


@on_both
def test_a_largest_value_that_is_no_number_stays_none(device: str) -> None:
    assert called(device)["nan"] == [True, True, False]


@on_both
@pytest.mark.parametrize("name", list(OFFERED))
def test_every_way_passes_the_gate_under_strict(tmp_path: Path, device: str, name: str) -> None:
    path = tmp_path / f"{name.lower()}.py"
    path.write_text(globals()[name])
    with Prober(device) as prober:
        problem = import_file(path, prober, CPU if device == "cpu" else on_card(4 << 30))
    executor = LocalExecutor(device)
    # Compiled, Triton's kernels are those of a device; interpreted, no compiler can follow them.
    further = () if device == "cpu" else tuple((*ways, "compile") for ways in OFFERED[name])
    try:
        for ways in (*OFFERED[name], *further):
            source = with_ways(problem.start, ways, "ieee")
            assert set(ways_of(source)) == set(ways)
            assert gated(executor, problem, source, "fp32-strict") == ("passed", "within limits"), ways
    finally:
        executor.close()
