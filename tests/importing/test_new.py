"""The file that `gpusolver new` writes runs as it is, and its ledger holds the problem. In a process of its own: one executor a device."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from click.testing import CliRunner

from gpusolver.__main__ import main
from gpusolver.engine import registration
from gpusolver.events.model import KernelGated, RunRegistered, Statistics
from gpusolver.events.reader import LedgerReader
from gpusolver.replay.verify import verify

FEW = Statistics(blocks=9, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)


def test_the_template_of_new_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registration, "STATISTICS", FEW)
    assert CliRunner().invoke(main, ["new", "softer"]).exit_code == 0
    again = CliRunner().invoke(main, ["new", "softer"])
    assert again.exit_code == 1 and "left as it is" in again.output
    words = ["run", "softer.py", "--device", "cpu", "--ledger", "l.db", "--arms", "on", "--rounds", "1"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    report = verify("l.db", deep=True)
    assert report.findings == () and report.counts["runs"] == 1
    with LedgerReader("l.db") as reader:
        events = [stored.event for stored in reader.recorded()]
        (registered,) = (event for event in events if isinstance(event, RunRegistered))
        (problem,) = registered.problems
        assert isinstance(problem.files, dict)
        assert reader.artifact(problem.files["original.py"]) == Path("softer.py").read_bytes()
    assert [event.outcome for event in events if isinstance(event, KernelGated)] == ["passed"]
