"""A worker forked after the compiler stack was imported: CUDA works in it, and torch.compile does."""

from __future__ import annotations

import time

import pytest

from gpusolver.engine.fork_client import ForkClient
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.worker_process import WorkerProcess
from gpusolver.problems.contract import declared, load
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report

from .test_device import SCALAR, question

pytestmark = pytest.mark.gpu

COMPILED = """
import torch

product = torch.compile(lambda a, b: a @ b)

def run(a, b):
    return product(a, b)
"""


def test_the_stack_is_preloaded_and_a_compiled_source_passes_the_gate() -> None:
    from gpusolver.engine.worker import preload

    executor = LocalExecutor("cuda")
    try:
        assert executor.facts()["compiler"] == preload.PRELOADED
        began = time.perf_counter()
        report = shapes.decode(shapes.Report, executor.gate(question(load(SCALAR)), COMPILED).artifacts["report"])
        print(f"gate of a compiled source: {time.perf_counter() - began:.2f} s")
        assert (
            report.error is None
            and judge_report(report, declared(load(SCALAR), "flags"), "tf32-allowed")[0] == "passed"
        )
    finally:
        executor.close()


def test_workers_of_one_server_have_the_device_each() -> None:
    client = ForkClient("cuda")
    try:
        for _ in range(2):
            worker = WorkerProcess(client, warm=True)
            assert worker.hello().status == "ok"
            worker.kill()
        assert "starting without" not in client.log_tail()
    finally:
        client.close()
