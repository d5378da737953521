"""The `rows` way: its kernels, interpreted or on a GPU, against float64 torch, and that only texts which name an operator get it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpusolver.engine.generators.module_text import ways_of, with_ways
from gpusolver.problems.module_source import ModuleCall, eager

USER = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {body}


def get_init_inputs():
    return []
"""
CALL = ModuleCall(tensors=1, fixed={}, state=(), eval="")
CHECK = """
import importlib.util, sys, torch
s = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(s)
s.loader.exec_module(made)
device = sys.argv[2]
torch.manual_seed(1)
wide = (1, 37), (3, 4097), (2, 3, 9000), (5, 1), (7,), (4, 16)
for shape in wide:
    x = torch.randn(shape, device=device) * 3
    if shape == (3, 4097):
        x[0, :4096] = -float("inf") if "softmax" in sys.argv[3] else 0.0
    got = made.run(x)
    want = eval(sys.argv[3], {"torch": torch, "x": x.double()})
    torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5 * max(1.0, float(x.double().abs().sum(-1).max()) ** 0.5))
names = {getattr(n.target, "__name__", "") for g in made._TRACES.values() for n in g.graph.nodes}
assert sys.argv[4] in names, names
"""
BODIES = [
    ("torch.softmax(x, dim=-1)", "_softmax_rows"),
    ("torch.log_softmax(x, dim=-1)", "_softmax_rows"),
    ("torch.log_softmax(x, dim=0)", "_softmax_rows"),
    ("torch.cumsum(x, dim=-1)", "_cumsum_rows"),
    ("torch.cumsum(x * 2, dim=0)", "_cumsum_rows"),
]


def check(tmp_path: Path, body: str, kernel: str, device: str) -> None:
    source = with_ways(eager(USER.format(body=body), CALL), ("rows",), "ieee")
    assert ways_of(source) == ("rows",)
    (tmp_path / "made.py").write_text(source)
    environment = dict(os.environ) | ({"TRITON_INTERPRET": "1"} if device == "cpu" else {})
    command = [sys.executable, "-c", CHECK, str(tmp_path / "made.py"), device, body, kernel]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


@pytest.mark.torch_cpu
@pytest.mark.parametrize(("body", "kernel"), BODIES)
def test_kernels_agree_with_float64_where_interpreted(tmp_path: Path, body: str, kernel: str) -> None:
    check(tmp_path, body, kernel, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize(("body", "kernel"), BODIES)
def test_kernels_agree_with_float64_on_a_gpu(tmp_path: Path, body: str, kernel: str) -> None:
    check(tmp_path, body, kernel, "cuda")


def test_a_text_that_names_no_such_operator_is_not_given_the_way() -> None:
    assert ways_of(with_ways(eager(USER.format(body="x"), CALL), ("rows",), "ieee")) == ()


def test_only_the_kernels_that_a_text_can_use_are_in_it() -> None:
    source = with_ways(eager(USER.format(body="x.cumsum(-1)"), CALL), ("rows",), "ieee")
    assert "_cumsum_kernel" in source and "_softmax_kernel" not in source
