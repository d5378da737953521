"""Gates one candidate of the corpus in a real worker and says what came of it. Expects nothing."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from gpusolver.engine.corpus import Candidate, candidates
from gpusolver.engine.executor import Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.events.model import Cell
from gpusolver.problems.contract import declared, load
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report

FOLDER = Path(__file__).parent
LIMIT_S = {"cpu": 8.0, "cuda": 60.0}
HONEST = "import torch\n\ndef run(x):\n    return torch.softmax(x, -1)\n"
PASSED = ("passed", "within limits")


class Seen(msgspec.Struct, frozen=True):
    """Outcome and reason by the engine's own gate rules, or an infrastructure fault as `fault:<status>`; seconds that it took."""

    outcome: str
    reason: str
    spent_s: float

    def said(self) -> tuple[str, str]:
        """Outcome and reason."""
        return self.outcome, self.reason


def listed(device: str) -> tuple[Candidate, ...]:
    """Every candidate that is meant for the device."""
    return candidates(FOLDER, device)


def opened(device: str) -> LocalExecutor:
    """An executor with short limits."""
    return LocalExecutor(device, limits_s={"gate": LIMIT_S[device], "compare": LIMIT_S[device]})


def gated(executor: LocalExecutor, one: Candidate, seed: int = 11) -> Seen:
    """The candidate under its own problem and contract."""
    source = (FOLDER / one.file).read_bytes().decode("utf-8", "surrogateescape")
    return judged(executor, source, one.problem, one.contract, seed)


def judged(executor: LocalExecutor, source: str, name: str, contract: str, seed: int = 11) -> Seen:
    """A source under a problem and a contract."""
    problem = load(name)
    cell = Cell(problem=name, contract=contract, pool="flags", arm="on", repetition=1)
    began = time.monotonic()
    seen = executor.gate(Question(cell=cell, problem=problem, purpose="gate", seed=seed), source)
    spent = time.monotonic() - began
    if seen.status != "ok":
        return Seen(f"fault:{seen.status}", seen.text, spent)
    report = shapes.decode(shapes.Report, seen.artifacts["report"])
    return Seen(*judge_report(report, declared(problem, "flags"), contract), spent)


def honest(executor: LocalExecutor) -> Seen:
    """A softmax that is right, after whatever ran before."""
    return judged(executor, HONEST, "kb_softmax", "fp32-strict", 12)
