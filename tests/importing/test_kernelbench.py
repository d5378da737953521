"""How much of a KernelBench clone comes in: every file of the levels named, its own start through the real gate, on the CPU.

KERNELBENCH=DIR LEVELS=level1,level2 pytest tests/importing/test_kernelbench.py -m campaign -s

Whole networks cannot be made as small as operators: LEVELS=level3 ROOM=2048,8192,50 gives MiB held, MiB moved and GFLOP of a call.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from gpusolver.engine.local import LocalExecutor
from gpusolver.events.errors import GpuSolverError
from gpusolver.problems.imported import find, import_file
from gpusolver.problems.probing import CPU, Budget, Prober

from .gating import gated

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(7200)]
LIMIT_S = 300.0


def room() -> Budget:
    """How large a call may be: the stand-in's own budget, or that of ROOM."""
    if "ROOM" not in os.environ:
        return CPU
    held, moved, gflop = (int(number) for number in os.environ["ROOM"].split(","))
    return Budget(held=held << 20, moved=moved << 20, flops=gflop * 10**9)


@pytest.fixture(scope="module")
def clone() -> Path:
    if "KERNELBENCH" not in os.environ:
        pytest.skip("KERNELBENCH: expected the folder of a clone, found none")
    return Path(os.environ["KERNELBENCH"])


def end(executor: LocalExecutor, prober: Prober, path: Path) -> tuple[str, str]:
    """What became of a file, and why: refused, passed, or the gate's verdict on its own start under fp32-strict."""
    try:
        problem = import_file(path, prober, room())
    except GpuSolverError as error:
        return "refused", str(error)
    return gated(executor, problem, problem.start, "fp32-strict")


@pytest.mark.parametrize("level", os.environ.get("LEVELS", "level1,level2").split(","))
def test_every_file_of_a_level_ends_in_a_verdict(clone: Path, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Refusals and unfit starts are ends like others and are listed; an error of ours is none."""
    executor = LocalExecutor("cpu", limits_s={"gate": LIMIT_S})
    counted, prober = Counter[str](), Prober("cpu")
    try:
        for path in find(f"kernelbench:{level}", clone):
            outcome, why = end(executor, prober, path)
            counted[outcome] += 1
            if outcome != "passed":
                with capsys.disabled():
                    print(f"\n  {path.name}: {outcome}: {why[:300]}", end="", flush=True)
    finally:
        executor.close()
        prober.close()
    with capsys.disabled():
        print(f"\n{level}: {counted.total()} files, {dict(counted)}")
    assert counted.total() > 0 and counted["passed"] >= 0.9 * counted.total()
