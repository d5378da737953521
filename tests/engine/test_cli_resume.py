"""`--resume` on the command line: it goes on as the ledger registered, and refuses words that would say otherwise."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gpusolver.__main__ import main
from gpusolver.engine.cli import run_command
from gpusolver.engine.cli_ablate import ablate_command
from gpusolver.engine.run import Run
from gpusolver.events.model import RunRegistered, RunStopped
from gpusolver.events.writer import LedgerWriter

from .support import FakeExecutor, assert_verifies, cell_events, ignore, only, play, request, stored, verdicts
from .test_recorded import Breaking

ASKED = request("off", "on", rounds=6)
# What each option that a run has no use for once it is registered is named with, beside --resume.
DECIDED = {
    "problems": ("--problems", "kb_matmul_scalar"),
    "arms": ("--arms", "off,on"),
    "rounds": ("--rounds", "6"),
    "repetitions": ("--repetitions", "2"),
    "contracts": ("--contract", "fp32-strict"),
    "pool": ("--pool", "dot"),
    "table": ("--rules", "full"),
    "propose": ("--propose",),
    "share": ("--share-measurements",),
    "comparisons": ("--comparisons", "none"),
    "generators": ("--generators", "catalogue"),
    "offers": ("--offers", "once"),
    "kernelbench": ("--kernelbench", "."),
    "blocks": ("--blocks", "64"),
    "objective": ("--objective", "energy"),
    "thermal": ("--thermal", "thermal.toml"),
    "latency_bound": ("--latency-bound", "3"),
    "seed": ("--seed", "7"),
}
FREE = {"resume", "ledger", "device", "recording"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "recording.db"
    play(path, FakeExecutor(), ASKED)
    return path


@pytest.fixture(scope="module")
def cut_off(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run that ended at its fourth gate, as by Ctrl-C."""
    path, executor = tmp_path_factory.mktemp("cut") / "l.db", Breaking(recording)
    executor.gates_left = 4
    with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, executor, ignore).start(ASKED)
    executor.close()
    return path


@pytest.fixture(autouse=True)
def unfinished(cut_off: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of it under the name that --ledger has by default."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(cut_off, tmp_path / "ledger.db"))


def invoke(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, [str(word) for word in words])


def refused(ledger: Path, *words: str) -> str:
    """What is said of the words, with which nothing is written."""
    before = ledger.read_bytes()
    result = invoke(*words)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), repr(result.exception)
    assert ledger.read_bytes() == before and [path.name for path in ledger.parent.iterdir()] == [ledger.name]
    return result.output


def test_every_option_is_either_free_or_decided() -> None:
    assert {parameter.name for parameter in run_command.params} == FREE | DECIDED.keys() | {"targets"}


@pytest.mark.parametrize("command", ["run", "ablate"])
@pytest.mark.parametrize("name", DECIDED)
def test_a_word_that_the_ledger_has_decided_is_refused(command: str, name: str, unfinished: Path) -> None:
    said = refused(unfinished, command, "--resume", *DECIDED[name])
    assert said.startswith("Error: --resume: expected nothing beside it but --device, --recording, --ledger")
    assert f"; found {DECIDED[name][0]}. " in said
    assert "is what its ledger registered: leave them out, or start a run of its own in another --ledger" in said


@pytest.mark.parametrize("command", [run_command, ablate_command])
def test_a_default_that_is_written_out_is_refused_too(command: click.Command, unfinished: Path) -> None:
    """It may differ from what the ledger registered, as here, where 6 rounds are."""
    rounds = next(parameter.default for parameter in command.params if parameter.name == "rounds")
    assert rounds == 12
    assert "found --rounds." in refused(unfinished, str(command.name), "--rounds", str(rounds), "--resume")


def test_all_that_is_too_much_is_told_at_once(unfinished: Path) -> None:
    said = refused(unfinished, "run", "kb_softmax", "absent.py", "--resume", "--seed", "1", "--arms", "on")
    assert "; found kb_softmax absent.py, --arms, --seed. " in said
    assert "--against, --also; found kb_softmax. " in refused(unfinished, "ablate", "kb_softmax", "--resume")


@pytest.mark.parametrize("words", [("run",), ("ablate",), ("ablate", "--against", "off")])
def test_ledger_device_and_recording_say_where_it_goes_on(
    words: tuple[str, ...], recording: Path, unfinished: Path
) -> None:
    """To the same verdicts as the run that was not cut off, and no second run."""
    done = invoke(*words, "--resume", "--ledger", unfinished, "--device", "recorded", "--recording", recording)
    assert done.exit_code == 0, done.output
    for arm in ("off", "on"):
        assert verdicts(cell_events(unfinished, arm)) == verdicts(cell_events(recording, arm)) != []
    events = [record.event for record in stored(unfinished)]
    assert len(only(events, RunRegistered)) == 1
    assert [stop.reason for stop in only(events, RunStopped) if stop.cell is None] == ["plan completed"]
    assert_verifies(unfinished)


def test_without_any_word_it_is_the_ledger_of_the_default_name(recording: Path, unfinished: Path) -> None:
    done = invoke("run", "--resume", "--recording", recording)
    assert done.exit_code == 0, done.output
    assert_verifies(unfinished)
