"""Modules called in other ways: right by the real gate on the CPU, and a whole run with them; what needs a GPU is marked so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpusolver.engine.export import Wanted, exported
from gpusolver.engine.generators.module_text import with_ways
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.events.model import GeneratorAsked, KernelGenerated, SourcesSwept, Statistics
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Prober, on_card
from gpusolver.replay.verify import verify

from ..importing import modules
from ..importing.gating import gated

PASSED = ("passed", "within limits")
ON_CPU = (
    ("channels_last",),
    ("folded",),
    ("fused_attention",),
    ("in_place",),
    ("compile",),
    ("channels_last", "folded", "in_place"),
)
ON_GPU = (*ON_CPU, ("cuda_graph",), ("compile", "cuda_graph"), ("reduce_overhead",), ("compile_autotune",))
# As the exported file's header says, where gpusolver cannot be imported, against the module itself in float64.
_ALONE = """
import importlib.util, sys
sys.modules["gpusolver"] = None
spec = importlib.util.spec_from_file_location("alone", sys.argv[1])
alone = importlib.util.module_from_spec(spec)
sys.modules["alone"] = alone
spec.loader.exec_module(alone)
model, given = alone.Model(*alone.get_init_inputs()), alone.get_inputs()
state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
out = alone.run(*given, *[state[name].detach() for name in alone._STATE])
expected = model.double()(*[value.double() for value in given]).detach()
print(float((out - expected).norm() / expected.norm()))
"""
# Fires on whatever was timed, so that the stand-in, which has no other signals, has rounds.
RULE = """
[[rule]]
name = "always"
version = 1
tier = 2
prescription = "fuse"
clauses = [{ signal = "time_us", op = ">", threshold = 0.0 }]
gain = { form = "constant", cap = 2.0 }
metrics = []
rationale = "For a test."
"""


class Quick(LocalExecutor):
    """The stand-in with few blocks: its times mean nothing, however many there are."""

    def statistics(self) -> Statistics:
        return Statistics(blocks=9, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalExecutor]:
    found = Quick("cpu")
    yield found
    found.close()


def imported(folder: Path, name: str, device: str = "cpu") -> Problem:
    path = folder / f"{name.lower()}.py"
    path.write_text(getattr(modules, name))
    with Prober(device) as prober:
        return import_file(path, prober, CPU if device == "cpu" else on_card(4 << 30))


@pytest.mark.torch_cpu
@pytest.mark.parametrize("name", ["IN_EVAL", "IN_TRAINING", "ATTENTION"])
def test_every_way_passes_the_gate_under_strict(tmp_path: Path, cpu: LocalExecutor, name: str) -> None:
    problem = imported(tmp_path, name)
    found = {ways: gated(cpu, problem, with_ways(problem.start, ways, "ieee"), "fp32-strict") for ways in ON_CPU}
    assert found == dict.fromkeys(ON_CPU, PASSED)


@pytest.mark.torch_cpu
def test_patterns_are_found_where_they_are(tmp_path: Path) -> None:
    import torch

    from gpusolver.engine.worker.loading import load_path

    def operators(name: str, way: str) -> list[str]:
        problem = imported(tmp_path, name)
        path = tmp_path / f"called_{name}_{way}.py"
        path.write_text(with_ways(problem.start, (way,), "ieee"))
        called, reference = load_path(path, path.stem), load_path(Path(problem.reference), f"reference_{name}_{way}")
        called.run(*reference.inputs({}, torch.Generator().manual_seed(1), torch.device("cpu")))
        (traced,) = called._TRACES.values()
        return [str(node.target) for node in traced.graph.nodes]

    folded = operators("IN_EVAL", "folded")
    assert "aten.batch_norm.default" not in folded and "aten.conv2d.default" in folded
    assert "aten.batch_norm.default" in operators("IN_TRAINING", "folded")
    fused = operators("ATTENTION", "fused_attention")
    assert "aten.scaled_dot_product_attention.default" in fused and "aten.softmax.int" not in fused
    assert [t for t in operators("CHAIN", "in_place") if t.split(".")[1:2] in (["mul_"], ["relu_"], ["add_"])] == [
        "aten.mul_.Tensor", "aten.relu_.default", "aten.add_.Tensor",
    ]  # fmt: skip


@pytest.mark.torch_cpu
def test_a_whole_run_sweeps_the_ways_and_can_be_verified(tmp_path: Path, cpu: LocalExecutor) -> None:
    problem, table, path = imported(tmp_path, "CHAIN"), tmp_path / "rules.toml", tmp_path / "l.db"
    table.write_text(RULE)
    request = RunRequest(
        problems=(problem.name,), imported={problem.name: problem}, arms=("on",), contracts=("fp32-strict",), rounds=1,
        rules=str(table), generators=("module", "catalogue"),
    )  # fmt: skip
    with LedgerWriter(path) as ledger:
        Run(ledger, cpu, lambda *_: None).start(request)
    report = verify(path, deep=True)
    assert report.findings == ()
    with LedgerReader(path) as reader:
        events = [stored.event for stored in reader.recorded()]
        (swept,) = (event for event in events if isinstance(event, SourcesSwept))
        assert [e.outcome for e in events if isinstance(e, GeneratorAsked)] == ["made"]
        assert len(swept.sources) == 4 and swept.chosen is not None
        made = [e for e in events if isinstance(e, KernelGenerated)][-1]
        assert made.source == swept.sources[swept.chosen] and made.variant == "fuse:module"
        assert 'PRECISION = "ieee"' in reader.artifact(made.source).decode()
        text = exported(reader, path.name, Wanted(problem=problem.name))
    (tmp_path / "alone.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, "alone.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 2e-6


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["CHAIN", "IN_EVAL", "IN_TRAINING", "ATTENTION"])
def test_every_way_passes_the_gate_on_a_gpu(tmp_path: Path, name: str) -> None:
    executor = LocalExecutor("cuda")
    try:
        problem = imported(tmp_path, name, "cuda")
        found = {
            ways: gated(executor, problem, with_ways(problem.start, ways, "ieee"), "fp32-strict") for ways in ON_GPU
        }
        assert found == dict.fromkeys(ON_GPU, PASSED)
        assert gated(executor, problem, with_ways(problem.start, (), "tf32"), "tf32-allowed") == PASSED
        assert gated(executor, problem, with_ways(problem.start, (), "tf32"), "fp32-strict")[0] == "wrong_precision"
    finally:
        executor.close()
