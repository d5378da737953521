"""The kernels written blind to the rules: each has its registered cause, comes in by the importer, and passes its own gate on the CPU."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.events.model import Profiled, RuleFired
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem
from gpusolver.problems.imported import import_file
from gpusolver.problems.probing import CPU, Prober

from ..engine.support import FakeExecutor, ignore, only
from ..importing.gating import gated
from .blind_rounds import FILES, FOLDER, assert_holds, assert_none_fired_on_missing, events, play

_WRONG = "\n\n_answer = run\n\n\ndef run(*given):\n    answer = _answer(*given)\n    return {changed}\n"


def causes() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "causes.toml").read_text())


def test_every_kernel_has_one_cause_and_every_cause_a_kernel() -> None:
    stated = causes()
    resources = stated.pop("resources")
    assert list(stated) and set(stated) == {path.stem for path in FILES}
    for name, one in stated.items():
        assert set(one) == {"resource", "cause", "remedy"}, name
        assert one["resource"] in resources, name
        # A sentence each, and more than a word.
        assert all(one[key].endswith(".") and len(one[key].split()) > 4 for key in ("cause", "remedy")), name
    assert {one["resource"] for one in stated.values()} == set(resources)


def test_there_are_enough_and_none_is_a_copy_of_another() -> None:
    """Their trees differ by more than names of variables."""
    bodies = {path.stem: _shape(path) for path in FILES}
    assert len(bodies) >= 24
    assert len(set(bodies.values())) == len(bodies)


def _shape(path: Path) -> tuple[str, ...]:
    tree = ast.parse(path.read_text())
    return tuple(type(node).__name__ for node in ast.walk(tree)) + tuple(
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    )


def test_a_firing_on_a_signal_that_its_profile_lacks_is_seen(tmp_path: Path) -> None:
    """What is asked of a GPU's ledger, of made-up kernels on which rules fire: it holds, and no more once a signal that decided is taken away."""
    with LedgerWriter(tmp_path / "l.db") as ledger:
        Run(ledger, FakeExecutor(), ignore).start(RunRequest(problems=("kb_matmul_scalar",), arms=("on",), rounds=3))
    found = events(tmp_path / "l.db")
    assert_none_fired_on_missing(found)
    decided = {clause.signal for event in only(found, RuleFired) for clause in event.clauses}
    assert decided
    for name in decided:
        without = [_without(event, name) if isinstance(event, Profiled) else event for event in found]
        with pytest.raises(AssertionError):
            assert_none_fired_on_missing(without)


def _without(event: Profiled, name: str) -> Profiled:
    return msgspec.structs.replace(event, signals={k: v for k, v in event.signals.items() if k != name})


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    pytest.importorskip("torch")
    with Prober("cpu") as made:
        yield made


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = LocalExecutor("cpu")
    yield made
    made.close()


@pytest.mark.torch_cpu
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_own_run_passes_and_an_answer_one_percent_off_does_not(
    prober: Prober, executor: LocalExecutor, path: Path
) -> None:
    problem = import_file(path, prober, CPU)
    assert problem.dtype in ("float32", "int32")
    assert gated(executor, problem, problem.start, "tf32-allowed") == ("passed", "within limits")
    assert gated(executor, problem, problem.eager, "tf32-allowed")[0] == "passed"
    assert gated(executor, problem, off(problem), "tf32-allowed")[0] == "wrong_result"


def off(problem: Problem) -> str:
    """The start with its answer scaled by 1.01; of whole numbers, with every hundredth raised by one."""
    if problem.dtype == "float32":
        return problem.start + _WRONG.format(changed="answer * 1.01")
    changed = "answer + (_torch.arange(answer.numel(), device=answer.device) % 100 == 0).view(answer.shape).int()"
    return problem.start + _WRONG.format(changed=changed)


@pytest.mark.torch_cpu
@pytest.mark.parametrize("name", ["block_reversal_indices", "pointer_chase"])
def test_what_must_hold_of_a_round_holds_on_the_stand_in(
    prober: Prober, executor: LocalExecutor, tmp_path: Path, name: str
) -> None:
    """What the test on a GPU asks of every kernel."""
    problem = import_file(FOLDER / f"{name}.py", prober, CPU)
    play(tmp_path / "l.db", executor, problem)
    assert_holds(tmp_path / "l.db", problem)
