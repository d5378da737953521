"""What becomes of a process in which a count or an extra measurement failed, with workers that are made up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpusolver.engine.executor import Question
from gpusolver.engine.local import LIMITS_S, LocalExecutor
from gpusolver.engine.worker.protocol import Message, Reply
from gpusolver.events.model import Cell
from gpusolver.problems.contract import load

QUESTION = Question(
    cell=Cell(problem="kb_softmax", contract="fp32-strict", pool="flags", arm="on", repetition=1),
    problem=load("kb_softmax"), purpose="count", seed=1,
)  # fmt: skip


class Worker:
    """Answers everything with one status."""

    def __init__(self, status: str) -> None:
        self.status, self.killed = status, False

    def ask(self, message: Message, limit_s: float) -> Reply:
        return Reply(status=self.status, text="said")

    def kill(self) -> None:
        self.killed = True


def executor(worker: Worker) -> LocalExecutor:
    made = LocalExecutor.__new__(LocalExecutor)
    arms = SimpleNamespace(beside=lambda source: worker, settle=lambda: None)
    made._bout = SimpleNamespace(arms=arms)  # type: ignore[assignment]
    made._device, made._limits = "cuda", LIMITS_S
    return made


@pytest.mark.parametrize("status", ["request_failed", "context_lost", "worker_lost", "timeout"])
def test_a_process_in_which_a_request_failed_is_ended(status: str) -> None:
    """What the source did to it may be why; the next question finds another one."""
    counted, read = Worker(status), Worker(status)
    executor(counted).count(QUESTION, "source", ())
    executor(read).extra(QUESTION, "source", "warm")
    assert counted.killed and read.killed


@pytest.mark.parametrize("status", ["ok", "counters_permission", "extra_unsupported"])
def test_one_that_answered_is_kept(status: str) -> None:
    worker = Worker(status)
    assert executor(worker).count(QUESTION, "source", ()).status == status and not worker.killed
