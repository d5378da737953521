"""The `matvec` way: a matrix times one vector against float64, at awkward sizes, and used where the product is one alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from gpusolver.engine.generators.module_text import ways_of, with_ways
from gpusolver.problems.module_source import ModuleCall, eager

USER = """import torch


class Model(torch.nn.Module):
    def forward(self, A, B):
        return {body}


def get_inputs():
    return [torch.rand(37, 5001), torch.rand(5001, {last})]


def get_init_inputs():
    return []
"""
CALL = ModuleCall(tensors=2)
CHECK = """
import importlib.util, sys, torch
s = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(s)
s.loader.exec_module(made)
device, body, first, second = sys.argv[2:4] + [[int(size) for size in sizes.split("x")] for sizes in sys.argv[4:6]]
torch.manual_seed(3)
for factor in 1.0, 64.0, 2.0**-12:
    A, B = factor * torch.randn(first, device=device), torch.randn(second, device=device)
    want = eval(body, {"torch": torch, "A": A.double(), "B": B.double()})
    got = made.run(A, B)
    assert got.shape == want.shape and torch.equal(got, made.run(A, B))
    # Ours adds in slices; what is not replaced is the CPU's own library, which may add 5,001 terms in a row: 5001 ** 0.5 / 2 ** 24 = 4e-6.
    assert float((got.double() - want).norm() / want.norm()) < (1e-6 if sys.argv[6] == "True" else 1e-5)
A.view(-1)[1], A.view(-1)[-1] = float("nan"), float("inf")
want = eval(body, {"torch": torch, "A": A.double(), "B": B.double()})
torch.testing.assert_close(made.run(A, B).double(), want, rtol=1e-4, atol=1e-6, equal_nan=True)
names = {getattr(n.target, "__name__", "") for trace in made._TRACES.values() for n in trace.graph.nodes}
assert ("_matvec_of" in names) is (sys.argv[6] == "True"), names
turned = A.nan_to_num(0.0, 0.0).mT.contiguous().mT
want = eval(body, {"torch": torch, "A": turned.double(), "B": B.double()})
assert float((made.run(turned, B).double() - want).norm() / want.norm()) < 1e-5
"""
# (product, sizes of A, sizes of B, whether it is replaced).
PRODUCTS = [
    ("torch.matmul(A, B)", "37x5001", "5001x1", True),
    ("A @ B", "3x70001", "70001", True),
    ("torch.mv(A, B)", "65x1024", "1024", True),
    ("torch.relu(torch.mm(A, B)) + 1", "7x20000", "20000x1", True),
    ("A @ B", "2x3x20003", "20003x1", True),
    ("A @ B", "37x5001", "5001x2", False),
    ("A @ B", "3x1001", "1001x1", False),
]


@pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.torch_cpu), pytest.param("cuda", marks=pytest.mark.gpu)]
)
@pytest.mark.parametrize(("body", "first", "second", "replaced"), PRODUCTS)
def test_products_agree_with_float64(
    tmp_path: Path, body: str, first: str, second: str, replaced: bool, device: str
) -> None:
    source = with_ways(eager(USER.format(body=body, last=1), CALL), ("matvec",), "ieee")
    assert ways_of(source) == ("matvec",)
    (tmp_path / "made.py").write_text(source)
    environment = dict(os.environ) | ({"TRITON_INTERPRET": "1"} if device == "cpu" else {})
    command = [sys.executable, "-c", CHECK, str(tmp_path / "made.py"), device, body, first, second, str(replaced)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_products_of_two_matrices_are_not_given_the_way() -> None:
    for body, last in (("A @ B", "8"), ("torch.matmul(A, B)", "12"), ("A * B", "1")):
        assert ways_of(with_ways(eager(USER.format(body=body, last=last), CALL), ("matvec",), "ieee")) == ()
