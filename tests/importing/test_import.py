"""A user's file as a problem, on the CPU: how it is called, what is refused, and that its own start passes its gate."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.executor import Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import STATISTICS
from gpusolver.events.errors import BadInput
from gpusolver.events.model import Cell
from gpusolver.problems.contract import Problem
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Budget, Prober
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.witnesses import wrong_while_timed

from . import modules
from .gating import gated


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    found = LocalExecutor("cpu")
    yield found
    found.close()


def imported(folder: Path, text: str, name: str = "mine") -> Problem:
    path = folder / f"{name}.py"
    path.write_text(text)
    with Prober("cpu") as prober:
        return import_file(path, prober, CPU)


@pytest.mark.parametrize(
    "name", ["CHAIN", "IN_TRAINING", "IN_EVAL", "ATTENTION", "LARGEST", "DROPPING", "MASKED", "LOSS", "CLIPPED"]
)
def test_a_module_passes_its_own_gate(tmp_path: Path, executor: LocalExecutor, name: str) -> None:
    problem = imported(tmp_path, getattr(modules, name))
    assert gated(executor, problem, problem.start, "fp32-strict") == ("passed", "within limits")


def test_a_dropped_bias_is_found_although_the_module_builds_it_as_zeros(
    tmp_path: Path, executor: LocalExecutor
) -> None:
    text = modules.CHAIN.replace("self.scale = scale", "self.scale = scale\n        nn.init.zeros_(self.linear.bias)")
    problem = imported(tmp_path, text)
    without = problem.start.replace("self.linear(x)", "F.linear(x, self.linear.weight)")
    assert gated(executor, problem, without, "bf16-allowed")[0] == "wrong_result"


def test_rounded_operands_pass_where_tf32_is_allowed_and_nowhere_else(tmp_path: Path, executor: LocalExecutor) -> None:
    """Operands cut to TF32's ten bits by masking, in IEEE arithmetic: what a tensor core does to them."""
    problem = imported(tmp_path, modules.CHAIN)
    cut = "lambda v: (v.view(torch.int32) & -8192).view(torch.float32)"
    source = problem.start.replace(
        "self.linear(x)", f"F.linear(({cut})(x), ({cut})(self.linear.weight), self.linear.bias)"
    )
    assert gated(executor, problem, source, "fp32-strict")[0] == "wrong_precision"
    assert gated(executor, problem, source, "tf32-allowed")[0] == "passed"


@pytest.mark.parametrize(
    ("narrowing", "contract", "outcome"),
    [
        # Operands cut to TF32's ten bits by masking, in IEEE arithmetic: what a tensor core does to them.
        ("(v.view(torch.int32) & -8192).view(torch.float32)", "tf32-allowed", "passed"),
        ("(v.view(torch.int32) & -8192).view(torch.float32)", "fp32-strict", "wrong_precision"),
        # Rounded to bf16 they are nearer than cut to TF32 where all terms are above 0; where signs are mixed, they are not.
        ("v.bfloat16().float()", "tf32-allowed", "wrong_result"),
        ("v.bfloat16().float()", "bf16-allowed", "passed"),
    ],
)
def test_a_product_of_positive_numbers(
    tmp_path: Path, executor: LocalExecutor, narrowing: str, contract: str, outcome: str
) -> None:
    problem = imported(tmp_path, modules.POSITIVE)
    narrow = f"(lambda v: {narrowing})"
    source = problem.start.replace("torch.matmul(a, b)", f"torch.matmul({narrow}(a), {narrow}(b))")
    assert gated(executor, problem, source, contract)[0] == outcome


def test_a_product_of_positive_numbers_may_not_be_made_from_means(tmp_path: Path, executor: LocalExecutor) -> None:
    """Rank one: row sums times column sums over k is near where k is large (here 1/sqrt(9 k), 1 %), and no answer."""
    problem = imported(tmp_path, modules.POSITIVE)
    source = problem.start.replace("torch.matmul(a, b)", "a.sum(1, keepdim=True) * b.sum(0, keepdim=True) / a.shape[1]")
    assert gated(executor, problem, source, "tf32-allowed")[0] == "wrong_result"


@pytest.fixture
def wide(tmp_path: Path) -> Problem:
    """A problem of which five calls at most lie in memory at once."""
    path = tmp_path / "mine.py"
    path.write_text(modules.WIDE)
    with Prober("cpu") as prober:
        return import_file(path, prober, Budget(held=16 << 20, moved=1 << 30, flops=1 << 40))


def asked(problem: Problem, purpose: str) -> Question:
    cell = Cell(problem=problem.name, contract="fp32-strict", pool="flags", arm="on", repetition=1)
    return Question(cell=cell, problem=problem, purpose=purpose, seed=11)


def test_a_watched_batch_is_of_eight_calls_at_least(wide: Problem, executor: LocalExecutor) -> None:
    """However large the inputs: what a first call takes beside its GPU time is spread over as many."""
    wall = json.loads(executor.gate(asked(wide, "gate"), wide.start).artifacts["report"])["wall"]
    assert (wall["calls"], len(wall["outputs"])) == (8, 8)


def test_a_measurement_in_parts_meets_the_reference_at_its_own_ends(wide: Problem, executor: LocalExecutor) -> None:
    """Twelve draws come in three parts of four; A's outputs and B's meet in all of them, the float64 answer at two."""
    seen = executor.compare(asked(wide, "profile"), wide.start, wide.start, 6)
    outputs = json.loads(seen.artifacts["samples"])["outputs"]
    assert (len(outputs["pairs"]), len(outputs["ends"])) == (12, 2)
    assert all(side["rel_l2"] == 0.0 for end in outputs["ends"] for side in end)


def counting(start: str, change: str) -> str:
    """The start, but that its calls 10 to 13 do something else: behind five for warming up, four draws, and before four more."""
    return (
        f"{start}\n\n_honest, _calls = operation, [0]\n\ndef operation(x):\n    _calls[0] += 1\n"
        f"    if 10 <= _calls[0] < 14:\n        {change}\n    return _honest(x)\n"
    )


@pytest.mark.parametrize("change", ["return _honest(x) + 1", "x[::3] = x[0]", "return _honest(x.flip(0))"])
def test_what_is_wrong_in_the_middle_of_a_measurement_only_is_seen(
    wide: Problem, executor: LocalExecutor, change: str
) -> None:
    """Where the float64 answer is not asked: by the other side's outputs. What it does to its inputs it does to its own copy."""
    seen = executor.compare(asked(wide, "profile"), wide.start, counting(wide.start, change), 6)
    outputs = json.loads(seen.artifacts["samples"])["outputs"]
    assert all(side["rel_l2"] == 0.0 for end in outputs["ends"] for side in end)
    assert [pair["rel_l2"] > 1e-4 for pair in outputs["pairs"]] == [4 <= number < 8 for number in range(12)]
    samples = shapes.decode(shapes.Samples, seen.artifacts["samples"])
    assert wrong_while_timed(STATISTICS, samples, wide.limits["tf32-allowed"])


def test_sizes_are_halved_in_the_text_and_the_change_is_said(tmp_path: Path) -> None:
    problem = imported(tmp_path, modules.CHAIN)
    toml = problem.files["problem.toml"].decode()
    batch, width = tomllib.loads(toml)["shape"].values()
    assert (batch, width) == (2, 512)  # 1 MiB of weights: within 2 MiB
    assert "# Changed: batch_size 4096 -> 2" in toml
    assert "width = 512" in problem.start
    assert problem.files["original.py"].decode() == modules.CHAIN


def test_counts_are_minima(tmp_path: Path) -> None:
    """2 x 512 by 512 x 512: 2 * 2 * 512^2 FLOP; x, weight, bias and answer once, in fp32."""
    problem = imported(tmp_path, modules.CHAIN)
    assert problem.flops == 2 * 2 * 512 * 512
    assert problem.min_bytes == 4 * (2 * 512 + 512 * 512 + 512 + 2 * 512)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (modules.PAIR, "expected one tensor as the answer, found tuple of 2"),
        (modules.CHAIN.replace("class Model(", "class Net("), "expected the names inputs, reference, run"),
        (modules.CHAIN.replace("self.linear(x)", "self.linaer(x)"), "AttributeError"),
        (modules.CHAIN + "\nrun = 3\n", "gpusolver puts run into the file"),
        (modules.CHAIN.replace("[torch.rand(batch_size, width)]", "[[torch.rand(3)]]"), "found list at 0"),
        ("def broken(:\n", "expected a Python file"),
        (modules.CHAIN.replace("+ 0.5", "+ torch.rand(1)"), "another answer at a second call"),
    ],
)
def test_what_cannot_be_a_problem_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        imported(tmp_path, text)
    assert said in str(refusal.value)
    assert "mine.py" in str(refusal.value)
