"""Gating candidate sources in a real worker on the CPU, for the tests of the worker. Judges by the engine's own gate rules."""

from __future__ import annotations

import time

import msgspec

from gpusolver.engine.executor import Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.events.model import Cell
from gpusolver.problems.contract import declared, load
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report

PROBLEM = load("kb_softmax")
CELL = Cell(problem=PROBLEM.name, contract="tf32-allowed", pool="flags", arm="on", repetition=1)
GATE_LIMIT_S = 8.0
SLACK_S = 40.0
"""A gate asks a worker twice and a referee besides, on a busy machine; a hang would take for ever."""

HONEST = "import torch\n\ndef run(x):\n    return torch.softmax(x, -1)\n"


def open_worker() -> LocalExecutor:
    """An executor on the CPU with short limits."""
    return LocalExecutor("cpu", limits_s={"gate": GATE_LIMIT_S, "compare": GATE_LIMIT_S})


def question(problem: str = PROBLEM.name, seed: int = 11) -> Question:
    return Question(
        cell=msgspec.structs.replace(CELL, problem=problem), problem=load(problem), purpose="gate", seed=seed
    )


def gate(executor: LocalExecutor, source: str, problem: str = PROBLEM.name, seed: int = 11) -> tuple[str, str]:
    """(outcome, reason) as the engine judges the worker's report under tf32-allowed."""
    started = time.monotonic()
    seen = executor.gate(question(problem, seed), source)
    assert time.monotonic() - started < GATE_LIMIT_S + SLACK_S
    assert seen.status == "ok", seen
    report = shapes.decode(shapes.Report, seen.artifacts["report"])
    return judge_report(report, declared(load(problem), "flags"), "tf32-allowed")


def assert_unharmed(executor: LocalExecutor) -> None:
    """The next honest candidate passes."""
    assert gate(executor, HONEST) == ("passed", "within limits")
