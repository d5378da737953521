"""What `attention_dominant` needs of llama: the rule is live there, and torch's profiler names the operators that its signal counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.engine.rules import rules
from gpusolver.problems.contract import declared, load
from gpusolver.profilers.artifacts import Timeline
from gpusolver.profilers.metrics import plan
from gpusolver.profilers.timeline import timeline_signals

from .loading import load_file, load_text

WIDE = {"batch": 1, "seq": 256, "heads": 2, "pairs": 16, "hidden": 88}


def test_the_seed_rule_is_served_by_llama_alone_and_asks_for_a_timeline() -> None:
    rule = next(rule for rule in rules("seed") if rule.name == "attention_dominant")
    assert plan([rule]).roles == ("timeline",)
    assert rule.prescription in declared(load("llama"), "flags").prescriptions
    assert rule.prescription not in declared(load("matmul"), "flags").prescriptions


@pytest.mark.torch_cpu
def test_the_signal_is_there_for_the_written_attention_and_zero_for_the_fused_one(tmp_path: Path) -> None:
    """Operators are the same on both devices up to the kernel; the shares here are the CPU's own."""
    torch = pytest.importorskip("torch")
    problem = load("llama")
    inputs = load_file(Path(problem.reference)).inputs(WIDE, torch.Generator().manual_seed(1), "cpu")
    found = {}
    for name, source in {"start": problem.start, "fused": problem.eager}.items():
        module = load_text(tmp_path, name, source)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            module.run(*inputs)
        spent = {
            e.key: round(1000 * e.self_cpu_time_total) for e in profiler.key_averages() if e.key.startswith("aten::")
        }
        operators = tuple((key, ns) for key, ns in spent.items() if ns > 0)
        made = Timeline(collector="torch_profiler", calls=(((0, 1, "kernel"),),), operators=operators)
        share = timeline_signals(made, 1)["attention_share"]
        assert share is not None
        found[name] = share
        named = {"aten::bmm", "aten::_softmax"} & set(spent)
        assert len(named) == (2 if name == "start" else 0), spent
    assert 0 < found["start"] < 1 and found["fused"] == 0.0
