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
    def forward(self, {names}):
        return {body}


def get_init_inputs():
    return []
"""
CALL = ModuleCall(tensors=1, fixed={}, state=(), eval="")
MASKED = ModuleCall(tensors=2, fixed={}, state=(), eval="")
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
    torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=2e-5 * max(1.0, float(x.double().abs().nan_to_num(0, 0, 0).sum(-1).max()) ** 0.5), equal_nan=True)
names = {getattr(n.target, "__name__", "") for g in made._TRACES.values() for n in g.graph.nodes}
assert sys.argv[4] in names, names
"""
# Sums of a product, from the end, and of what stands before: sys.argv[4] are values of m, a column at a time.
CHECK_SUMS = """
import importlib.util, sys, torch
s = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(s)
s.loader.exec_module(made)
device, body, whole = sys.argv[2], sys.argv[3], sys.argv[4] == "True"
torch.manual_seed(2)
for shape in (1, 37), (3, 4097), (2, 3, 9000), (5, 2), (4, 16):
    for kind in (torch.bool, torch.float32):
        x, m = torch.randn(shape, device=device), torch.rand(shape, device=device)
        m = m > 0.4 if kind == torch.bool else m
        x[..., -1] = float("nan")
        if shape[-1] > 40:
            x[0, ..., 20], m[0, ..., 20] = float("inf"), False if kind == torch.bool else 0.5
        kept = x.clone(), m.clone()
        want = eval(body, {"torch": torch, "x": x.double(), "m": m if kind == torch.bool else m.double()})
        got = made.run(x, m)
        assert got.isnan().any() or "narrow" in body or "[..., :-1]" in body
        torch.testing.assert_close(got.double(), want, rtol=2e-5, atol=4e-4, equal_nan=True)
        assert torch.equal(x.nan_to_num(7.0), kept[0].nan_to_num(7.0)) and torch.equal(m, kept[1])
        strided, turned = x.mT.contiguous().mT, m.mT.contiguous().mT
        torch.testing.assert_close(made.run(strided, turned).double(), want, rtol=2e-5, atol=4e-4, equal_nan=True)
for trace in made._TRACES.values():
    operators = [getattr(n.target, "__name__", "") for n in trace.graph.nodes if n.op == "call_function"]
    operators = [name for name in operators if "grad" not in name]
    assert (operators == ["_cumsum_rows"]) is whole, operators
    assert "_cumsum_rows" in operators, operators
"""
SUMS = [
    ("torch.cumsum(x * m, dim=-1)", True),
    ("torch.cumsum(m * x, dim=x.dim() - 1)", True),
    ("torch.cumsum((x * m).flip(-1), dim=-1).flip(-1)", True),
    ("torch.cumsum(x.flip(x.dim() - 1), -1).flip([-1])", True),
    ("torch.cat((torch.zeros_like(x.narrow(-1, 0, 1)), x.narrow(-1, 0, x.size(-1) - 1).cumsum(-1)), dim=-1)", True),
    ("torch.cat([torch.zeros_like(x[..., :1]), torch.cumsum(x[..., :-1], -1)], -1)", True),
    ("torch.cumsum(x * m, dim=0).flip(-1)", False),
    ("torch.cumsum(x.flip(-1), -1).flip(0)", False),
    ("(x * m).cumsum(-1) + x * 2", False),
    ("torch.cumsum(x * m[..., :1], dim=-1)", False),
]
BODIES = [
    ("torch.softmax(x, dim=-1)", "_softmax_rows"),
    ("torch.log_softmax(x, dim=-1)", "_softmax_rows"),
    ("torch.log_softmax(x, dim=0)", "_softmax_rows"),
    ("torch.sigmoid(torch.softmax(x, dim=-1))", "_softmax_rows"),
    ("torch.sigmoid(torch.softmax(x.unsqueeze(-1).expand(*x.shape, 3).contiguous(), -2))", "_softmax_rows"),
    ("torch.log_softmax(torch.cat([x[..., -5:].unsqueeze(-2)] * 3, -2), x.dim() - 1)", "_softmax_rows"),
    ("torch.cumsum(x, dim=-1)", "_cumsum_rows"),
    ("torch.cumsum(x * 2, dim=0)", "_cumsum_rows"),
]


def check(tmp_path: Path, body: str, kernel: str, device: str) -> None:
    source = with_ways(eager(USER.format(body=body, names="x"), CALL), ("rows",), "ieee")
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


def check_sums(tmp_path: Path, body: str, whole: bool, device: str) -> None:
    (tmp_path / "made.py").write_text(with_ways(eager(USER.format(body=body, names="x, m"), MASKED), ("rows",), "ieee"))
    environment = dict(os.environ) | ({"TRITON_INTERPRET": "1"} if device == "cpu" else {})
    command = [sys.executable, "-c", CHECK_SUMS, str(tmp_path / "made.py"), device, body, str(whole)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.torch_cpu), pytest.param("cuda", marks=pytest.mark.gpu)]
)
@pytest.mark.parametrize(("body", "whole"), SUMS)
def test_sums_of_products_from_the_end_and_of_what_stands_before(
    tmp_path: Path, body: str, whole: bool, device: str
) -> None:
    check_sums(tmp_path, body, whole, device)


def test_a_text_that_names_no_such_operator_is_not_given_the_way() -> None:
    assert ways_of(with_ways(eager(USER.format(body="x", names="x"), CALL), ("rows",), "ieee")) == ()


def test_only_the_kernels_that_a_text_can_use_are_in_it() -> None:
    source = with_ways(eager(USER.format(body="x.cumsum(-1)", names="x"), CALL), ("rows",), "ieee")
    assert "_cumsum_kernel" in source and "_softmax_kernel" not in source
