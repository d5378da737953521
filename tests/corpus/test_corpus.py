"""Every candidate of the corpus in a real worker: cheats do not pass, honest ones do, and no attack costs more than its own outcome.

The whole corpus is slow (marker `bench` on the CPU, `gpu` on one); a fixed sample of it runs with the other tests of the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from gpusolver.engine.corpus import Candidate
from gpusolver.engine.local import LocalExecutor
from gpusolver.problems.contract import load
from gpusolver.profilers.artifacts import Fault

from .gating import FOLDER, LIMIT_S, PASSED, Seen, gated, honest, listed, opened

SLACK_S = 15.0
SAMPLE = {"cheats": 12, "honest": 8, "survival": 4}
JUDGED = {
    *get_args(Fault), "wrong_type", "inputs_changed", "nonfinite", "wrong_precision", "wrong_result", "nondeterministic", "wrong_later"
}  # fmt: skip
# Attacks on the referee end in a fault of the infrastructure, which is recorded and neutral.
RECORDED = {*JUDGED, "passed", "fault:request_failed", "fault:context_lost"}

CPU = listed("cpu")
GPU = listed("cuda")


def spread(kind: str, count: int) -> list[Candidate]:
    """So many of a kind, evenly over the list."""
    found = [one for one in CPU if one.kind == kind]
    return [found[i * len(found) // count] for i in range(count)] if len(found) > count else found


SAMPLED = [one for kind, count in SAMPLE.items() for one in spread(kind, count)]


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalExecutor]:
    made = opened("cpu")
    yield made
    made.close()


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    made = opened("cuda")
    yield made
    made.close()


def named(one: Candidate) -> str:
    return one.file


def assert_as_known(executor: LocalExecutor, one: Candidate, limit_s: float) -> None:
    """What its folder says of it, and that the next honest candidate finds everything as it was."""
    seen = gated(executor, one)
    if one.kind == "honest":
        assert seen.said() == PASSED, seen
        return
    if one.kind == "survival":
        assert seen.outcome in RECORDED and seen.spent_s < limit_s + SLACK_S, seen
    else:
        assert seen.outcome in RECORDED if one.time_cheat else _refused(seen), seen
    assert honest(executor).said() == PASSED


def _refused(seen: Seen) -> bool:
    return seen.outcome in RECORDED - {"passed"}


@pytest.mark.torch_cpu
@pytest.mark.parametrize("one", SAMPLED, ids=named)
def test_the_sample_on_the_cpu(cpu: LocalExecutor, one: Candidate) -> None:
    assert_as_known(cpu, one, LIMIT_S["cpu"])


@pytest.mark.campaign
@pytest.mark.parametrize("one", CPU, ids=named)
def test_the_whole_on_the_cpu(cpu: LocalExecutor, one: Candidate) -> None:
    assert_as_known(cpu, one, LIMIT_S["cpu"])


@pytest.mark.gpu
@pytest.mark.parametrize("one", GPU, ids=named)
def test_the_whole_on_the_gpu(gpu: LocalExecutor, one: Candidate) -> None:
    assert_as_known(gpu, one, LIMIT_S["cuda"])


def test_the_list_names_every_file_once_with_a_known_problem_and_contract() -> None:
    both = {one.file: one for one in (*listed("cpu"), *GPU)}
    on_disk = {str(path.relative_to(FOLDER)) for kind in SAMPLE for path in Path(FOLDER).glob(f"{kind}/*.py")}
    assert set(both) == on_disk
    assert len({one.file for one in listed("cpu")}) == len(listed("cpu")) and len({one.file for one in GPU}) == len(GPU)
    for one in both.values():
        assert one.contract in load(one.problem).limits and one.about and one.kind in SAMPLE
        assert not one.time_cheat or one.kind == "cheats"
