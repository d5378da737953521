"""`gpusolver ablate` on files of a clone beside a packaged problem, all arms and shared measurements: one command. In a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from click.testing import CliRunner
from msgspec import UNSET

from gpusolver.__main__ import main
from gpusolver.engine import registration
from gpusolver.events.model import RunRegistered, Statistics
from gpusolver.events.reader import LedgerReader
from gpusolver.replay.verify import verify

from . import modules

FEW = Statistics(blocks=9, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)
ALL = ("off", "on", "off+tabu", "on+tabu", "random")
IMPORTED = "kernelbench.level1.1_Chain"


def test_imported_and_packaged_problems_in_every_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registration, "STATISTICS", FEW)
    level = tmp_path / "KernelBench" / "level1"
    level.mkdir(parents=True)
    (level / "1_Chain.py").write_text(modules.CHAIN)
    said = CliRunner(env={"COLUMNS": "400"}).invoke(
        main,
        [
            *("ablate", "kernelbench:level1/first24", "kb_softmax", "--kernelbench", str(tmp_path), "--device", "cpu"),
            *("--arms", ",".join((*ALL, "oracle")), "--rounds", "1", "--share-measurements"),
        ],
    )
    assert said.exit_code == 0, said.output
    assert f"imported {IMPORTED}" in said.output and "Arms beside the oracle" in said.output
    assert "on against random over 2 problems" in said.output
    with LedgerReader("ledger.db") as reader:
        (registered,) = (s.event for s in reader.recorded() if isinstance(s.event, RunRegistered))
    assert registered.generators == ("module", "catalogue") and registered.shares is True
    assert registered.policy.offers is UNSET
    assert {(cell.problem, cell.arm) for cell in registered.plan} == {
        (problem, arm) for problem in (IMPORTED, "kb_softmax") for arm in ALL
    }
    assert verify("ledger.db", deep=True).findings == ()


def test_a_file_of_the_name_of_a_packaged_problem_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both in one run would be one problem; alone, the file is the problem of that name."""
    monkeypatch.chdir(tmp_path)
    Path("matmul.py").write_text(modules.CLIPPED)
    said = CliRunner().invoke(main, ["run", "matmul", "matmul.py", "--device", "cpu"])
    assert said.exit_code == 1 and "matmul: expected problems of different names" in said.output
    assert not Path("ledger.db").exists()
