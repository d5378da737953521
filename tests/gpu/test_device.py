"""What only a GPU can show: counters against arithmetic, the gate, inertness, and a worker that survives its candidates."""

from __future__ import annotations

import os
import pathlib
import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from gpusolver.engine.executor import Observation, Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import STATISTICS
from gpusolver.engine.rules import seed_rules
from gpusolver.engine.worker.ncu import collect
from gpusolver.engine.worker.protocol import Count, Subject
from gpusolver.events.model import Cell, Chip
from gpusolver.problems.contract import Problem, declared, load
from gpusolver.problems.sources import with_config, with_precision
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.calibration import copy_gbps
from gpusolver.profilers.chips import chip_for
from gpusolver.profilers.gates import judge_report
from gpusolver.profilers.intervals import interval
from gpusolver.profilers.launches import is_inert
from gpusolver.profilers.metrics import plan
from gpusolver.profilers.signals import signals
from gpusolver.profilers.verdicts import judge

pytestmark = pytest.mark.gpu
SCALAR = "kb_matmul_scalar"


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor("cuda", limits_s={"gate": 25.0})
    yield executor
    executor.close()


def question(problem: Problem, contract: str = "tf32-allowed", purpose: str = "test") -> Question:
    cell = Cell(problem=problem.name, contract=contract, pool="flags", arm="on", repetition=1)
    return Question(cell=cell, problem=problem, purpose=purpose, seed=20260101)


def tiled(problem: Problem, precision: str) -> str:
    """The K-tiled variant with 32 x 32 tiles, k step 32, four warps."""
    variant = problem.variant("coalesce", "flags")
    assert variant is not None and variant.source is not None
    config = {"BLOCK_K": 32, "BLOCK_M": 32, "BLOCK_N": 32, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}
    return with_config(with_precision(variant.source, "tf32" if precision == "tf32" else "ieee"), config)


def outcome(seen: Observation, problem: Problem, contract: str) -> str:
    report = shapes.decode(shapes.Report, seen.artifacts["report"])
    return judge_report(report, declared(problem, "flags"), contract)[0]


def launches(gpu: LocalExecutor, problem: Problem, source: str) -> shapes.Launches:
    return shapes.decode(shapes.Launches, gpu.gate(question(problem), source).artifacts["launches"])


def counters(gpu: LocalExecutor, problem: Problem, source: str) -> shapes.Counters:
    seen = gpu.count(question(problem), source, plan(seed_rules()).metrics)
    assert seen.status == "ok", seen.text
    return shapes.decode(shapes.Counters, seen.artifacts["counters"])


def seen_signals(gpu: LocalExecutor, problem: Problem, source: str) -> dict[str, float]:
    facts = gpu.facts()
    chip: Chip = chip_for(facts["device"], facts["compute_capability"])
    copy = copy_gbps(shapes.decode(shapes.Calibration, gpu.calibrate().artifacts["calibration"]))
    samples = shapes.decode(
        shapes.Samples, gpu.compare(question(problem), source, source, STATISTICS.blocks).artifacts["samples"]
    )
    listed, read = launches(gpu, problem, source), counters(gpu, problem, source)
    return signals(declared(problem, "flags"), "tf32-allowed", chip, copy, samples, listed, read)


def test_scalar_kernel_loads_5_of_12_bytes(gpu: LocalExecutor) -> None:
    """Nsight Compute and CUPTI both gave 41.67 % for this kernel on an H200 before this project."""
    found = seen_signals(gpu, load(SCALAR), load(SCALAR).start)
    assert found["load_eff"] == pytest.approx(0.4167, abs=0.001)
    assert found["tensor_active"] == 0.0
    assert found["kernel_count"] == 1


def test_tensor_instructions_are_counted_without_load_immediates(gpu: LocalExecutor) -> None:
    """512^3 / (16 x 8 x 8) = 131072 MMAs of m16n8k8; the IEEE twin has none although its plain counter is not 0."""
    problem = load(SCALAR)
    strict = seen_signals(gpu, problem, tiled(problem, "ieee"))
    loose = seen_signals(gpu, problem, tiled(problem, "tf32"))
    assert strict["tensor_inst"] == 0 and strict["tensor_active"] == 0.0
    assert loose["tensor_inst"] == 512**3 / (16 * 8 * 8) and loose["tensor_active"] == 1.0


def test_load_efficiency_is_missing_where_all_loads_are_asynchronous(gpu: LocalExecutor) -> None:
    found = seen_signals(gpu, load(SCALAR), tiled(load(SCALAR), "ieee"))
    assert "load_eff" not in found


def test_dram_bytes_agree_with_the_algorithm(gpu: LocalExecutor) -> None:
    """A one-pass softmax of 8192 x 8192 floats reads 268 MB; at most an L2 of its 268 MB of writes may stay behind."""
    found = seen_signals(gpu, load("kb_softmax"), load("kb_softmax").start)
    size = 8192 * 8192 * 4
    assert 2 * size - 70e6 < found["dram_bytes"] < 2 * size * 1.05


def test_precision_flag_is_inert_on_the_scalar_kernel_only(gpu: LocalExecutor) -> None:
    problem = load(SCALAR)
    start, flagged = problem.start, with_precision(problem.start, "tf32")
    assert is_inert(launches(gpu, problem, flagged), launches(gpu, problem, start))
    assert not is_inert(launches(gpu, problem, tiled(problem, "tf32")), launches(gpu, problem, tiled(problem, "ieee")))


@pytest.mark.parametrize("name", ["matmul", "batched_gemm"])
def test_gate_refuses_tf32_under_the_strict_contract(gpu: LocalExecutor, name: str) -> None:
    problem = load(name)
    seen = gpu.gate(question(problem), with_precision(problem.start, "tf32"))
    assert outcome(seen, problem, "fp32-strict") == "wrong_precision"
    assert outcome(seen, problem, "tf32-allowed") == "passed"


@pytest.mark.parametrize("name", [SCALAR, "kb_softmax", "matmul"])
def test_identical_arms_are_the_same(gpu: LocalExecutor, name: str) -> None:
    problem = load(name)
    seen = gpu.compare(question(problem), problem.start, problem.start, STATISTICS.blocks)
    facts = gpu.facts()
    verdict = judge(
        outcome="passed",
        inert=False,
        samples=shapes.decode(shapes.Samples, seen.artifacts["samples"]),
        problem=declared(problem, "flags"),
        contract="tf32-allowed",
        chip=chip_for(facts["device"], facts["compute_capability"]),
        statistics=STATISTICS,
        noise_floor=0.0,
    )
    assert verdict.verdict == "SAME", verdict


def test_planted_slowdown_is_seen(gpu: LocalExecutor) -> None:
    """The same kernel with its result computed twice takes twice as long, to within launch overhead."""
    problem = load("matmul")
    twice = problem.start + "\n\n_once = run\n\n\ndef run(a, b):\n    _once(a, b)\n    return _once(a, b)\n"
    seen = gpu.compare(question(problem), problem.start, twice, STATISTICS.blocks)
    found = interval(shapes.decode(shapes.Samples, seen.artifacts["samples"]), STATISTICS)
    assert found is not None and 0.47 < found.lower <= found.upper < 0.53


HANG = """
import torch, triton
import triton.language as tl
PRECISION = "ieee"

@triton.jit
def spin(flag, out):
    while tl.load(flag, volatile=True) == 0:
        pass
    tl.store(out, 1.0)

def run(a, b):
    out = torch.empty_like(a)
    spin[(1,)](torch.zeros(1, dtype=torch.int32, device=a.device), out)
    return out
"""
ILLEGAL = """
import torch, triton
import triton.language as tl
PRECISION = "ieee"

@triton.jit
def wild(out):
    tl.store(out + (1 << 40), 1.0)

def run(a, b):
    out = torch.empty_like(a)
    wild[(1,)](out)
    return out
"""


@pytest.mark.parametrize("source, expected", [(HANG, "timeout"), (ILLEGAL, "run_error")])
def test_b77_b129_worker_survives(gpu: LocalExecutor, source: str, expected: str) -> None:
    problem, began = load(SCALAR), time.monotonic()
    assert outcome(gpu.gate(question(problem), source), problem, "tf32-allowed") == expected
    assert time.monotonic() - began < 60
    assert outcome(gpu.gate(question(problem), problem.start), problem, "tf32-allowed") == "passed"


def test_ncu_agrees_with_cupti(gpu: LocalExecutor, tmp_path: pathlib.Path) -> None:
    """Counts within 1 %, load efficiency within 0.1 points: two collectors, one kernel."""
    problem = load(SCALAR)
    ours = counters(gpu, problem, problem.start).metrics
    gpu._bout.arms.close()  # ncu is refused while this process's worker holds the counters
    subject = Subject(reference=load(SCALAR).reference, shape=problem.shape, seed=1)
    request = Count(subject=subject, source=problem.start, metrics=tuple(ours))
    path = tmp_path / "request"
    path.write_bytes(msgspec.msgpack.encode([request]))
    os.environ.setdefault("PYTHONPATH", os.getcwd())
    theirs = collect([sys.executable, "-m", "gpusolver.engine.worker.once", str(path)], tuple(ours), "GH100", 120.0)
    found = theirs.counters["metrics"]
    assert isinstance(found, dict)
    loads = "smsp__sass_inst_executed_op_global_ld.sum"
    efficiency = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
    assert found[loads] == pytest.approx(ours[loads], rel=0.01)
    assert found[efficiency] == pytest.approx(ours[efficiency], abs=0.1)
