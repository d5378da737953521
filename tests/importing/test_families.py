"""Which operations surely have no product, and that TF32 is then no difference between a winner and its twin. Nothing here is timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch
from torch import nn

from gpusolver.engine.generators.base import Asked
from gpusolver.engine.generators.module import ModuleGenerator
from gpusolver.engine.generators.module_text import ways_of
from gpusolver.engine.registration import RunRequest, register
from gpusolver.events.model import HeadToHead
from gpusolver.problems.contract import Problem
from gpusolver.problems.gauging import _family
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Prober
from gpusolver.problems.rounding import Rounding, Traffic, rounded
from gpusolver.problems.sources import strict_twin

from ..engine.support import FakeExecutor, Kernel, assert_verifies, only, play, stored
from . import modules

SQUARE = (24, 24)


@pytest.fixture(scope="module")
def library() -> Any:
    """A person's own operators: one under a name of cudnn's, one that nobody knows."""
    made = torch.library.Library("gpusolver_test", "DEF")
    made.define("_cudnn_rnn(Tensor x, Tensor[] weights, Tensor bias) -> Tensor")
    made.impl("_cudnn_rnn", lambda x, weights, bias: x @ weights[0] + bias, "CPU")
    made.define("mystery(Tensor x) -> Tensor")
    made.impl("mystery", lambda x: x + 1, "CPU")
    return made


def family(call: Callable[..., torch.Tensor], *drawn: torch.Tensor) -> str:
    with Rounding(10) as mode:
        out = call(*(value.double() for value in drawn))
    with Traffic() as traffic:
        call(*drawn)
    return _family(traffic.names, mode.seen, out, drawn)


def typed(made: nn.Module) -> Callable[..., torch.Tensor]:
    """A module that takes either precision, as the reference and the eager form do."""

    def call(*given: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            found = made.to(given[0].dtype)(*given)
        return found[0] if isinstance(found, tuple) else found

    return call


PRODUCTLESS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...], str]] = {
    "relu": (torch.relu, (SQUARE,), "elementwise"),
    "gelu": (nn.functional.gelu, (SQUARE,), "elementwise"),
    "running sum": (lambda x: x.cumsum(1), (SQUARE,), "elementwise"),
    "outer": (torch.outer, ((24,), (24,)), "elementwise"),
    "upsampling": (nn.Upsample(scale_factor=2, mode="linear"), ((2, 3, 8),), "elementwise"),
    "layer norm": (typed(nn.LayerNorm(24)), (SQUARE,), "norm"),
    "batch norm": (typed(nn.BatchNorm1d(24)), (SQUARE,), "norm"),
    "softmax": (lambda x: x.softmax(-1), (SQUARE,), "norm"),
    "euclidean norm": (lambda x: x / torch.norm(x), (SQUARE,), "norm"),
    "pool": (nn.MaxPool1d(4), ((2, 3, 32),), "reduce"),
    "loss": (nn.functional.mse_loss, (SQUARE, SQUARE), "reduce"),
}
WITH_ONE: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...], str]] = {
    "product": (torch.matmul, (SQUARE, SQUARE), "matmul"),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), (SQUARE, SQUARE), "matmul"),
    "lstm": (typed(nn.LSTM(8, 8)), ((5, 2, 8),), "network"),
    "gru": (typed(nn.GRU(8, 8)), ((5, 2, 8),), "network"),
    "distances": (torch.cdist, ((40, 8), (50, 8)), "matmul"),
    # No product is seen, and one cannot be ruled out.
    "few distances": (torch.cdist, ((4, 8), (5, 8)), "matmul"),
    "inverse": (torch.linalg.inv, (SQUARE,), "matmul"),
    "exponential": (torch.matrix_exp, (SQUARE,), "matmul"),
    "convolution": (lambda x: nn.functional.conv1d(x, x[:3]), ((4, 3, 9),), "conv"),
}


@pytest.mark.parametrize(
    ("call", "shapes", "due"), [*PRODUCTLESS.values(), *WITH_ONE.values()], ids=[*PRODUCTLESS, *WITH_ONE]
)
def test_families(call: Callable[..., torch.Tensor], shapes: tuple[tuple[int, ...], ...], due: str) -> None:
    torch.manual_seed(1)
    assert family(call, *(torch.rand(shape) for shape in shapes)) == due


def test_what_nobody_knows_may_multiply(library: Any) -> None:
    assert family(torch.ops.gpusolver_test.mystery, torch.rand(SQUARE)) == "matmul"


def test_weights_in_a_list_are_rounded_too(library: Any) -> None:
    """By hand: both operands of the product to ten bits, the bias as it is."""
    torch.manual_seed(2)
    x, weight, bias = torch.rand(SQUARE).double(), torch.rand(SQUARE).double(), torch.rand(24).double()
    with Rounding(10) as mode:
        found = torch.ops.gpusolver_test._cudnn_rnn(x, [weight], bias)
    assert mode.seen == 1
    assert torch.equal(found, rounded(x, 10) @ rounded(weight, 10) + bias)
    assert not torch.equal(found, x @ weight + bias)


# --- a whole run ----------------------------------------------------------------------------------------------------------

RULE = """
[[rule]]
name = "always"
version = 1
tier = 2
prescription = "less_traffic"
clauses = [{ signal = "time_us", op = ">", threshold = 0.0 }]
gain = { form = "constant", cap = 2.0 }
metrics = []
rationale = "For a test."
"""


# Of the size that the stand-in says its answers have.
SUMS = modules.MASKED.replace("batch_size = 32", "batch_size = 512").replace("batch_size, 40", "batch_size, 512")


def problem(folder: Path, text: str) -> Problem:
    path = folder / "mine.py"
    path.write_text(text)
    with Prober("cpu") as prober:
        return import_file(path, prober, CPU)


def prescribed(found: Problem) -> tuple[str, ...]:
    """What a run registers as served."""
    asked = RunRequest(problems=(found.name,), imported={found.name: found}, generators=("module", "catalogue"))
    (declared,) = register("run1", asked, FakeExecutor()).problems
    return declared.prescriptions


def compiled_is_best(text: str) -> Kernel:
    """A made-up library kernel, half as long where it is compiled and nothing else."""
    return Kernel(ns=400_000 if ways_of(text) == ("compile",) else 800_000)


def compared(path: Path) -> dict[str, HeadToHead]:
    return {event.comparison: event for event in only((r.event for r in stored(path)), HeadToHead)}


def test_without_a_product_no_rule_may_ask_for_tf32(tmp_path: Path) -> None:
    assert "enable_tf32" not in prescribed(problem(tmp_path, SUMS)) and "fuse" in prescribed(problem(tmp_path, SUMS))
    assert "enable_tf32" in prescribed(problem(tmp_path, modules.CHAIN))


@pytest.mark.parametrize("share", [False, True])
def test_a_winner_without_a_product_is_its_own_strict_twin(tmp_path: Path, share: bool) -> None:
    """The precision part is then no measurement, and the kernel part is the very pair of the total, measured once where the run shares."""
    (tmp_path / "rules.toml").write_text(RULE)
    found = problem(tmp_path, SUMS)
    assert found.family == "elementwise"
    asked = RunRequest(
        problems=(found.name,), imported={found.name: found}, arms=("on",), contracts=("tf32-allowed",), rounds=1,
        rules=str(tmp_path / "rules.toml"), generators=("module", "catalogue"), share=share,
    )  # fmt: skip
    path, executor = tmp_path / "ledger.db", FakeExecutor(compiled_is_best)
    play(path, executor, asked)
    assert_verifies(path)
    ended = compared(path)
    total, kernel, precision = (ended[name] for name in ("total", "kernel_part", "precision_part"))
    assert (precision.outcome, precision.left) == ("identical", precision.right)
    assert total.outcome == "measured" and (kernel.left, kernel.right) == (total.left, total.right)
    assert (kernel.samples == total.samples) == share == (kernel.origin_seq is not None)


def test_with_a_product_its_prescription_still_is_tf32(tmp_path: Path) -> None:
    found = problem(tmp_path, modules.CHAIN)
    assert found.family == "matmul"
    asked = Asked(
        problem=found, contract="tf32-allowed", prescription="enable_tf32", rule="r", source=found.start, signals={}
    )
    made = ModuleGenerator().propose(asked)
    assert made is not None and all(strict_twin(source) != source for source in made.sources)
    assert ways_of(made.sources[0]) == ()
