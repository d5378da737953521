"""Candidates of the cuda and triton generators on a GPU: right, listed by name, and swept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpusolver.engine.executor import Question
from gpusolver.engine.generators.base import Asked, Candidate
from gpusolver.engine.generators.cuda import CudaGenerator
from gpusolver.engine.local import LocalExecutor
from gpusolver.events.model import Cell
from gpusolver.problems.contract import declared, load
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report
from gpusolver.profilers.sweeps import choose

pytestmark = pytest.mark.gpu
SERVED = (
    ("kb_softmax", "fuse", "rows"), ("kb_layernorm", "fuse", "rows"), ("kb_reduce", "fuse", "rows"),
    ("sigmoid", "fuse", "elementwise"), ("kb_matmul_scalar", "coalesce", "product"), ("batched_gemm", "coalesce", "product"),
)  # fmt: skip


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor("cuda")
    yield executor
    executor.close()


def question(problem: str) -> Question:
    cell = Cell(problem=problem, contract="fp32-strict", pool="flags", arm="on", repetition=1)
    return Question(cell=cell, problem=load(problem), purpose="sweep", seed=20260101)


def asked(problem: str, prescription: str) -> Asked:
    found = load(problem)
    return Asked(
        problem=found, contract="fp32-strict", prescription=prescription, rule="", source=found.start, signals={}
    )


@pytest.mark.parametrize(("problem", "prescription", "kernel"), SERVED)
def test_nvrtc_candidates_pass_their_gate_and_are_listed_by_name(
    gpu: LocalExecutor, problem: str, prescription: str, kernel: str
) -> None:
    """Captured as a graph, the one kernel of each source has its own name, its registers, and no other beside it."""
    made = CudaGenerator().propose(asked(problem, prescription))
    assert made is not None
    for source in made.sources:
        seen = gpu.gate(question(problem), source)
        report = shapes.decode(shapes.Report, seen.artifacts["report"])
        assert judge_report(report, declared(load(problem), "flags"), "fp32-strict")[0] == "passed", report.error
        listed = shapes.decode(shapes.Launches, seen.artifacts["launches"])
        assert listed.complete and kernel in [launch.name for launch in listed.kernels]
        assert all(launch.registers for launch in listed.kernels if launch.name == kernel)


@pytest.mark.parametrize("generator", ["cuda", "triton"])
def test_a_sweep_has_a_choice(gpu: LocalExecutor, generator: str) -> None:
    made: Candidate | None
    if generator == "cuda":
        made = CudaGenerator().propose(asked("kb_softmax", "fuse"))
    else:
        pytest.importorskip("libcst")
        from gpusolver.engine.generators.triton import TritonGenerator

        made = TritonGenerator().propose(asked("kb_softmax", "hide_latency"))
    assert made is not None
    seen = gpu.sweep(question("kb_softmax"), "", made.sources)
    sweep = shapes.decode(shapes.Sweep, seen.artifacts["sweep"])
    assert len(sweep.samples) == len(made.sources) and choose(sweep, 0.01) is not None
