"""What every executor owes the loop, whatever it measures with. Judges shapes and promises, never a time."""

from __future__ import annotations

from gpusolver.engine.executor import Executor, Observation, Question
from gpusolver.engine.registration import STATISTICS
from gpusolver.events.artifacts import digest
from gpusolver.events.model import Cell
from gpusolver.problems.contract import load
from gpusolver.problems.sources import with_precision
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import gate_seed
from gpusolver.profilers.metrics import plan

from .support import request

PROBLEM = load("kb_matmul_scalar")
CELL = Cell(problem=PROBLEM.name, contract="tf32-allowed", pool="flags", arm="on", repetition=1)
BLOCKS = STATISTICS.blocks
ROLES = ("timeline", "warm", "compiled", "energy", "kernels")


def question(purpose: str, source: str) -> Question:
    """As the loop asks it in attempt 1 of a run with seed 0."""
    return Question(
        cell=CELL, problem=PROBLEM, purpose=purpose, seed=gate_seed(request().seed, digest(source.encode()), 1)
    )


def conforms(executor: Executor, blocks: int = BLOCKS) -> None:
    """Ask for everything that a round may ask for, once, in the order of a round."""
    facts = executor.facts()
    assert facts["device"] and facts["compute_capability"]
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in facts.items())
    seen = [_calibrates(executor), *_gates(executor, PROBLEM.start), _compares(executor, blocks), _counts(executor)]
    seen += _gates(executor, with_precision(PROBLEM.start, "tf32"))
    _extras(executor)
    asked = executor.statistics()
    assert asked is None or (executor.origin is not None and asked.blocks == blocks)
    for observation in seen:
        assert (observation.origin_seq is None) == (executor.origin is None)
    executor.resume([])


def _calibrates(executor: Executor) -> Observation:
    seen = executor.calibrate()
    assert seen.status == "ok"
    assert shapes.decode(shapes.Calibration, seen.artifacts["calibration"]).copy.bytes > 0
    return seen


def _gates(executor: Executor, source: str) -> list[Observation]:
    """A right kernel: a report without error, inside the limits, and launches whose blobs come along."""
    asked = question("gate", source)
    seen = executor.gate(asked, source)
    assert seen.status == "ok"
    report = shapes.decode(shapes.Report, seen.artifacts["report"])
    assert report.error is None and report.draws and report.seed == asked.seed
    limits = PROBLEM.limits["tf32-allowed"]
    assert all(draw.rel_l2 is not None and draw.rel_l2 <= limits.rel_l2 for draw in report.draws)
    named = shapes.decode(shapes.Launches, seen.artifacts["launches"]).kernels
    brought = {digest(content) for _, content in seen.blobs}
    assert {value for kernel in named for value in (kernel.code, kernel.ttir) if value} <= brought
    return [seen]


def _compares(executor: Executor, blocks: int) -> Observation:
    seen = executor.compare(question("profile", PROBLEM.start), PROBLEM.start, PROBLEM.start, blocks)
    assert seen.status == "ok"
    assert len(shapes.decode(shapes.Samples, seen.artifacts["samples"]).blocks) == blocks
    return seen


def _counts(executor: Executor) -> Observation:
    """Counters, or the reason why there are none."""
    seen = executor.count(question("count", PROBLEM.start), PROBLEM.start, plan(()).metrics)
    if seen.status == "ok" and seen.artifacts:
        assert shapes.decode(shapes.Counters, seen.artifacts["counters"]).metrics
    else:
        assert seen.status.startswith("counters_") and seen.text
    return seen


def _extras(executor: Executor) -> None:
    """An artifact under its role, or words why there is none; a role that nobody knows is no fault either."""
    for role in (*ROLES, "horoscope"):
        seen = executor.extra(question("extra", PROBLEM.start), PROBLEM.start, role)
        assert set(seen.artifacts) == ({role} if seen.status == "ok" else set())
        assert seen.status == "ok" or (seen.status.startswith("extra_") and seen.text)
    (beside,) = executor.ncu([(question("ncu", PROBLEM.start), PROBLEM.start)], plan(()).metrics)
    assert beside.status == "ok" or (beside.status.startswith("ncu_") and beside.text)
