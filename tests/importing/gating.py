"""One gate of one source of an imported problem, judged. Imports torch only by way of the executor's workers."""

from __future__ import annotations

from gpusolver.engine.executor import Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.events.model import Cell
from gpusolver.problems.contract import Problem, declared
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report


def gated(executor: LocalExecutor, problem: Problem, source: str, contract: str, seed: int = 11) -> tuple[str, str]:
    """(outcome, reason)."""
    cell = Cell(problem=problem.name, contract=contract, pool="flags", arm="on", repetition=1)
    seen = executor.gate(Question(cell=cell, problem=problem, purpose="gate", seed=seed), source)
    assert seen.status == "ok", seen.text
    return judge_report(shapes.decode(shapes.Report, seen.artifacts["report"]), declared(problem, "flags"), contract)
