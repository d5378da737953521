"""Faults of generated text that the worker and the rule table meet: what a model may write, and what a rule may not be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine.rules import parse_rules
from gpusolver.events.errors import BadInput


@pytest.fixture(scope="module")
def executor() -> Iterator[object]:
    from ..engine.candidates import open_worker

    made = open_worker()
    yield made
    made.close()


@pytest.mark.torch_cpu
@pytest.mark.parametrize(
    ("line", "outcome", "said"),
    [
        ("raise SystemExit(0)", "load_error", "SystemExit"),
        ("raise ValueError('of mine')", "load_error", "of mine"),
        ("{}['missing']", "load_error", "KeyError"),
        ("assert False, 'never'", "load_error", "never"),
        ("import os; os._exit(3)", "worker_lost", ""),
    ],
)
def test_b126_whatever_a_source_raises_at_import_is_its_outcome(
    executor: object, line: str, outcome: str, said: str
) -> None:
    """Type and text are in the reason, and the next candidate is unharmed."""
    from ..engine.candidates import HONEST, assert_unharmed, gate

    found, reason = gate(executor, f"{line}\n\n{HONEST}")  # type: ignore[arg-type]
    assert found == outcome and said in reason
    assert_unharmed(executor)  # type: ignore[arg-type]


@pytest.mark.torch_cpu
@pytest.mark.parametrize(
    ("source", "outcomes"),
    [
        ("import torch\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n", ("load_error",)),
        ("def run(x):\n    return None\n", ("wrong_type", "run_error")),
        ("import torch\n\ndef run(x):\n    return (torch.softmax(x, -1),)\n", ("wrong_type", "run_error")),
        ("import torch\n\ndef run(x):\n    return [torch.softmax(x, -1)]\n", ("wrong_type", "run_error")),
    ],
)
def test_b127_a_wrong_name_or_a_wrong_return_is_told_apart(
    executor: object, source: str, outcomes: tuple[str, ...]
) -> None:
    """A module without run is no kernel; None, a tuple and a list are no tensor; the reason says what was expected."""
    from ..engine.candidates import gate

    found, reason = gate(executor, source)  # type: ignore[arg-type]
    assert found in outcomes and reason
    assert "run" in reason or "tensor" in reason.lower()


RULE = """
[[rule]]
name = "made_up"
version = 1
tier = 1
prescription = "coalesce"
metrics = []
rationale = "made up"
gain = {{ form = "constant", cap = 2.0 }}
{clauses}
"""


@pytest.mark.parametrize(
    "clauses",
    [
        "cond = \"__import__('os').system('touch x')\"",
        "clauses = [\"__import__('os').system('touch x')\"]",
        'clauses = [{ signal = "().__class__.__base__", op = "exec", threshold = 1.0 }]',
        'clauses = [{ signal = "time_us", op = ">", threshold = "9**9**9" }]',
        'clauses = [{ signal = "time_us", op = ">", threshold = 1.0, cond = "1" }]',
    ],
)
def test_b132_a_rule_is_data_and_no_expression_is_ever_evaluated(
    clauses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clauses are a signal, an operator of five and a number: anything else is refused by name, and nothing runs."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="rule 1"):
        parse_rules(RULE.format(clauses=clauses), "table.toml", "table.toml")
    assert list(tmp_path.iterdir()) == []


def test_b132_a_signal_of_any_name_is_looked_up_and_never_evaluated() -> None:
    """A name that is code is a name: no kernel has such a signal, so the rule abstains for ever."""
    text = 'clauses = [{ signal = "().__class__.__base__", op = ">", threshold = 1.0 }]'
    (rule,) = parse_rules(RULE.format(clauses=text), "table.toml", "table.toml")
    assert rule.clauses[0].signal == "().__class__.__base__"
