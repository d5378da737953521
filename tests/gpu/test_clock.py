"""Whether looking at a kernel changes its time: a worker before and after its first activity records and counters."""

from __future__ import annotations

import pytest

from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.rules import rules
from gpusolver.problems.contract import load
from gpusolver.profilers.metrics import plan

from .test_measurement import counters, extra, time_ns

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["kb_softmax", "kb_matmul_scalar"])
def test_profiling_leaves_the_clock_alone(name: str) -> None:
    """Medians of 40 cold samples, within 1 %."""
    problem, fresh = load(name), LocalExecutor("cuda")
    try:
        before = time_ns(fresh, problem)
        extra(fresh, problem, "timeline")
        counters(fresh, problem, plan(rules("full")).metrics)
        assert time_ns(fresh, problem) == pytest.approx(before, rel=0.01)
    finally:
        fresh.close()
