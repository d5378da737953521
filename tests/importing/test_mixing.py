"""What inputs of mixed signs, and of other kinds, ask of honest and of narrow kernels: modules of our own, TF32 emulated on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.local import LocalExecutor
from gpusolver.problems.contract import Problem
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Budget, Prober

from .gating import gated
from .modules import HEAD, POSITIVE

_NARROWED = """

from torch.utils._python_dispatch import TorchDispatchMode

class _Narrow(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket.__name__ in ("mm", "bmm", "addmm", "convolution"):
            args = tuple(_narrowed(v) if isinstance(v, torch.Tensor) and v.dim() > 1 else v for v in args)
        return function(*args, **(kwargs or {}))

def _narrowed(v):
    return NARROWING

_whole = operation

def operation(*inputs):
    with _Narrow():
        return _whole(*inputs)
"""
_BITS = "v.contiguous().view(torch.int32)"
CUT = f"({_BITS} & -8192).view(torch.float32)"
ROUNDED = f"(({_BITS} + 4096) & -8192).view(torch.float32)"
BF16 = "v.bfloat16().float()"
TWO = "torch.rand(64, 1024), torch.rand(1024, 64)"
LONG = "torch.rand(8, 32768), torch.rand(32768, 8)"


def module(body: str, inputs: str, built: str = "pass") -> str:
    """A module of one line."""
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {built}\n\n"
        f"    def forward(self, *x):\n        {body}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


LOG = module("return torch.log(x[0] @ x[1])", TWO)
QUOTIENT = module("return (x[0] @ x[1]) / (x[0] @ x[2])", f"{TWO}, torch.rand(1024, 64)")
PROBABILITIES = module("return torch.log(x[0]) @ x[1]", TWO)
SOFTMAX = module("return F.softmax(x[0] @ x[1] / 100, dim=1)", TWO)
BLOCKED = module(
    "return F.softmax(x[0] @ x[1] / 100 + x[2], dim=1)",
    f"{TWO}, torch.where(torch.rand(64, 64) > 0.5, 0.0, -math.inf)",
)
NORMED = module(
    "return self.norm(self.linear(x[0]))",
    "torch.rand(64, 256)",
    "self.linear, self.norm = nn.Linear(256, 64), nn.BatchNorm1d(64); self.eval()",
)
LONG_SUM = module("return x[0] @ x[1]", LONG)
ROOMY = Budget(held=1 << 28, moved=1 << 32, flops=10**12)
ONE_NUMBER = module("return (x[0] @ x[1]).mean()", TWO)


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    found = LocalExecutor("cpu")
    yield found
    found.close()


def imported(folder: Path, text: str, budget: Budget = CPU) -> Problem:
    path = folder / "mine.py"
    path.write_text(text)
    with Prober("cpu") as prober:
        return import_file(path, prober, budget)


@pytest.mark.parametrize(
    ("text", "mixed", "bf16"),
    [
        # Near 0 a product changes its sign, so a logarithm of it is one or none; a quotient is as large as chance has it.
        (LOG, None, "passed"),
        (ONE_NUMBER, None, "passed"),
        # Its errors to one side are gone from a quotient, so that plain inputs tell them apart.
        (QUOTIENT, None, "wrong_result"),
        # An input that a logarithm is taken of stays as it is.
        (PROBABILITIES, (1,), "wrong_result"),
        (BLOCKED, None, "wrong_result"),
        # Large, a softmax picks one of two as rounding has it: that is no reason to allow as much on plain inputs.
        (SOFTMAX, None, "wrong_result"),
        # Weights of both signs hide nothing.
        (NORMED, None, "wrong_result"),
    ],
)
def test_honest_kernels_pass_and_bf16_where_tf32_is_allowed_does_not(
    tmp_path: Path, executor: LocalExecutor, text: str, mixed: tuple[int, ...] | None, bf16: str
) -> None:
    problem = imported(tmp_path, text)
    assert (problem.mixed_inputs or None) == mixed
    assert (b"# Not told: " in problem.files["problem.toml"]) == (bf16 == "passed")
    assert gated(executor, problem, problem.start, "fp32-strict")[0] == "passed"
    narrowed = {each: problem.start + _NARROWED.replace("NARROWING", each) for each in (CUT, ROUNDED, BF16)}
    found = [gated(executor, problem, narrowed[each], "tf32-allowed", seed=13) for each in (CUT, ROUNDED)]
    assert [outcome for outcome, _ in found] == ["passed", "passed"]
    assert gated(executor, problem, narrowed[CUT], "fp32-strict")[0] == "wrong_precision"
    assert gated(executor, problem, narrowed[BF16], "tf32-allowed")[0] == bf16


def test_what_remains_possible_is_to_look_at_the_inputs(tmp_path: Path, executor: LocalExecutor) -> None:
    """As replay/FORMAT.md 6.2 says: bf16 only where no number is negative passes wherever plain limits have to admit a TF32 unit's cut."""
    problem = imported(tmp_path, POSITIVE)
    narrow = problem.start + _NARROWED.replace("NARROWING", BF16)
    looking = narrow.replace(
        "    with _Narrow():",
        "    if min(v.min() for v in inputs) < 0:\n        return _whole(*inputs)\n    with _Narrow():",
    )
    assert looking != narrow
    assert gated(executor, problem, narrow, "tf32-allowed")[0] == "wrong_result"
    assert gated(executor, problem, looking, "tf32-allowed")[0] == "passed"
    assert gated(executor, problem, looking, "fp32-strict")[0] == "wrong_precision"


def test_a_long_sum_may_be_taken_in_another_order(tmp_path: Path, executor: LocalExecutor) -> None:
    """By steps of eight, as a tile's loop does: 4096 roundings of a growing sum, where eager's are of a tree. Dropped terms are told."""
    problem = imported(tmp_path, LONG_SUM)
    steps = (
        "\n\ndef operation(a, b):\n    total = torch.zeros(8, 8)\n    for k in range(0, FIRST, 8):\n"
        "        total = total + a[:, k : k + 8] @ b[k : k + 8]\n    return total\n"
    )
    whole, short = (problem.start + steps.replace("FIRST", str(first)) for first in (32768, 32720))
    assert gated(executor, problem, whole, "fp32-strict")[0] == "passed"
    assert gated(executor, problem, short, "tf32-allowed")[0] == "wrong_result"
    means = problem.start + "\n\ndef operation(a, b):\n    return a.sum(1, keepdim=True) * b.mean(0, keepdim=True)\n"
    assert gated(executor, problem, means, "tf32-allowed")[0] == "wrong_result"


def test_where_answers_hardly_differ_the_start_is_fit_and_their_mean_is_wrong(
    tmp_path: Path, executor: LocalExecutor
) -> None:
    """2^20 products of numbers in [0, 1): rows differ by 7e-4 of what they are, and TF32 operands that are cut are off by as much.

    Refused on the first of the plain draws, which are what is timed, and not only where signs are mixed.
    """
    problem = imported(tmp_path, module("return x[0] @ x[1]", "torch.rand(8, 1 << 20), torch.rand(1 << 20, 1)"), ROOMY)
    assert gated(executor, problem, problem.start, "tf32-allowed")[0] == "passed"
    mean = "\n\n_all = run\n\ndef run(*inputs):\n    out = _all(*inputs)\n    return torch.full_like(out, out.mean().item())\n"
    outcome, reason = gated(executor, problem, f"import torch\n{problem.start}{mean}", "tf32-allowed")
    assert outcome == "wrong_result" and reason.startswith("draw 0: ")
