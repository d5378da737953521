"""A convolution called with channels last answers row by row, as the module itself does. On the CPU; times nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.engine.generators.module_text import with_ways
from gpusolver.problems.module_source import ModuleCall, eager

USER = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 4, 6, 6)]


def get_init_inputs():
    return []
"""


def test_channels_last_is_turned_back_before_it_is_handed_out(tmp_path: Path) -> None:
    start = eager(USER, ModuleCall(tensors=1, fixed={}, state=("conv.weight", "conv.bias")))
    found = {}
    x, weight, bias = torch.randn(2, 4, 6, 6), torch.randn(8, 4, 3, 3), torch.randn(8)
    for ways in ((), ("channels_last",)):
        path = tmp_path / f"made{len(ways)}.py"
        path.write_text(with_ways(start, ways, "ieee"))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[ways] = module.run(x, weight, bias)
    plain, turned = found[()], found[("channels_last",)]
    assert turned.is_contiguous() and turned.stride() == plain.stride() == (288, 36, 6, 1)
    torch.testing.assert_close(turned, plain, rtol=1e-5, atol=1e-5)
