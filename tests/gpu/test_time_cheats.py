"""Right answers in a false or unearned time, through a whole round beside PyTorch's own operator, which computes the same: none is credited."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from gpusolver.engine.corpus import Candidate
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.events.model import KernelGated, RoundJudged
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem
from gpusolver.problems.imported import materialised
from gpusolver.replay.verify import verify

from ..corpus.gating import FOLDER, LIMIT_S, listed
from ..engine.support import ignore, only, stored

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

TABLE = """
[[rule]]
name = "whatever_it_is"
version = 1
tier = 1
prescription = "fuse"
clauses = [{ signal = "time_us", op = ">", threshold = 0.0 }]
gain = { form = "constant", cap = 2.0 }
metrics = []
rationale = "Asks for the candidate under test."
"""
PRESCRIBED = """
[[prescriptions.fuse]]
pool = "any"
kind = "file"
file = "cheat.py"
"""
ROOM = Path(str(resources.files("gpusolver.problems")))
CHEATS = tuple(one for one in listed("cuda") if one.time_cheat)


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor("cuda", limits_s={"gate": LIMIT_S["cuda"], "compare": LIMIT_S["cuda"]})
    yield executor
    executor.close()


@pytest.mark.parametrize("one", CHEATS, ids=lambda one: Path(one.file).stem)
def test_a_cheat_of_time_is_not_credited(gpu: LocalExecutor, tmp_path: Path, one: Candidate) -> None:
    play(tmp_path, gpu, one)
    seen = [recorded.event for recorded in stored(tmp_path / "l.db")]
    gates = [event for event in only(seen, KernelGated) if event.round == 0]
    assert gates and all(event.outcome == "passed" for event in gates)
    (judged,) = only(seen, RoundJudged)
    assert judged.verdict != "FASTER", judged
    assert verify(tmp_path / "l.db", deep=True).findings == ()


def play(folder: Path, executor: LocalExecutor, one: Candidate) -> None:
    """One round of the cheat."""
    (folder / "table.toml").write_text(TABLE)
    problem = cheated(one)
    asked = RunRequest(
        problems=(problem.name,),
        imported={problem.name: problem},
        arms=("on",),
        contracts=(one.contract,),
        rounds=1,
        rules=str(folder / "table.toml"),
        comparisons=(),
        blocks=12,
    )
    with LedgerWriter(folder / "l.db") as ledger:
        Run(ledger, executor, ignore).start(asked)


def cheated(one: Candidate) -> Problem:
    """The candidate's problem, which starts at its eager form, and whose only prescription is the cheat."""
    folder, name = ROOM / one.problem, f"{one.problem}.{Path(one.file).stem}"
    said = (folder / "problem.toml").read_text().split("\n[[prescriptions", 1)[0]
    files = {path: (folder / path).read_bytes() for path in ("reference.py", "eager.py")}
    files["start.py"] = files["eager.py"]
    files["cheat.py"] = (FOLDER / one.file).read_bytes()
    files["problem.toml"] = (said.replace(f'name = "{one.problem}"', f'name = "{name}"') + PRESCRIBED).encode()
    return materialised(name, files)
