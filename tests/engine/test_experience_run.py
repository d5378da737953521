"""Whole runs that start from another ledger: what they register, what they save, and that a stranger can derive it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.run import Run
from gpusolver.events.errors import BadInput
from gpusolver.events.model import EvidenceCarried, RoundJudged, RuleFired, RuleRetired, RunRegistered
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .support import (
    COALESCED,
    INERT,
    FakeExecutor,
    assert_verifies,
    cell_events,
    ignore,
    only,
    play,
    request,
    stored,
    verdicts,
)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("first") / "first.db"
    play(path, FakeExecutor(), request("off", "on", rounds=8))
    return path


def replayed(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, ["replay", *map(str, words), "--verify"])


def test_what_one_run_learnt_the_next_begins_with(first: Path, tmp_path: Path) -> None:
    """One problem is one trial: TF32 on the scalar kernel, which failed eight rounds here, is retired after three more, not four."""
    path = tmp_path / "second.db"
    play(path, FakeExecutor(), replace(request("off", "on", rounds=8), rules=f"from:{first}"))
    registered = only((r.event for r in stored(path)), RunRegistered)[0]
    with LedgerReader(first) as reader:
        events, head = reader.head()
    assert registered.experience and (registered.experience.head, registered.experience.events) == (head, events)
    assert verdicts(cell_events(first, "on"))[:5] == [INERT] * 4 + [COALESCED]
    assert verdicts(cell_events(path, "on"))[:4] == [INERT] * 3 + [COALESCED]
    (retired, *_) = only(cell_events(path, "on"), RuleRetired)
    assert (retired.failures, len(retired.firings)) == (4, 3)
    assert verdicts(cell_events(path, "off")) == verdicts(
        cell_events(first, "off")
    )  # what does not evolve does not learn
    assert_verifies(path)
    said = replayed(path, "--experience", first)
    assert said.exit_code == 0 and "findings: none" in said.output and "was not read" not in said.output
    assert "run1: the ledger that it learnt from was not read; name it with --experience" in replayed(path).output


def test_evidence_that_was_made_up_is_found(first: Path, tmp_path: Path) -> None:
    """The decisions follow from what is recorded, so only the ledger that was learnt from can tell."""
    path, other = tmp_path / "second.db", tmp_path / "other.db"
    play(path, FakeExecutor(), replace(request("on", rounds=8), rules=f"from:{first}"))
    play(other, FakeExecutor(), request("off", rounds=3))
    said = replayed(path, "--experience", other)
    assert said.exit_code == 1 and "experience: expected" in said.output


def test_a_run_of_the_same_ledger_may_be_learnt_from(first: Path, tmp_path: Path) -> None:
    """Its own first events are what it learnt from: no other file is needed to check it."""
    path = tmp_path / "both.db"
    path.write_bytes(first.read_bytes())
    with LedgerWriter(path) as ledger:
        Run(ledger, FakeExecutor(), ignore).start(replace(request("on", rounds=8), rules=f"from:{first}", propose=True))
    carried = only((r.event for r in stored(path)), EvidenceCarried)
    assert {entry.run for entry in carried} == {"run2"} and carried
    said = replayed(path).output
    found = [line for line in said.splitlines() if line.startswith("  event ")]
    assert all(
        ": samples: " in line for line in found
    )  # the made-up device gives the same times twice, and nothing else is found
    assert "was not read" not in said
    assert len(only((r.event for r in stored(path) if r.stream.startswith("run2/")), RuleFired)) > 0


def test_a_resumed_run_keeps_what_it_began_with(first: Path, tmp_path: Path) -> None:
    """The lesson is in the ledger: the file that it came from may be gone."""
    source, path = tmp_path / "source.db", tmp_path / "second.db"
    source.write_bytes(first.read_bytes())

    def stop(stage: str, left: list[int] = [6]) -> None:  # noqa: B006 - counts over the calls
        left[0] -= stage == "gate"
        if not left[0]:
            raise KeyboardInterrupt

    asked = replace(request("on", rounds=8), rules=f"from:{source}")
    with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, FakeExecutor(before=stop), ignore).start(asked)
    source.unlink()
    with LedgerWriter(path) as ledger:
        Run(ledger, FakeExecutor(), ignore).resume()
    whole = tmp_path / "whole.db"
    play(whole, FakeExecutor(), replace(asked, rules=f"from:{first}"))
    rules = [(e.rule, e.verdict) for e in only(cell_events(path, "on"), RoundJudged)]
    assert rules == [(e.rule, e.verdict) for e in only(cell_events(whole, "on"), RoundJudged)]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rules": "from:nowhere.db"}, "expected the ledger of earlier runs, found no file nowhere.db"),
        ({"propose": True}, "--propose: expected --rules from:LEDGER"),
    ],
)
def test_refusals_write_nothing(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    path = tmp_path / "ledger.db"
    with pytest.raises(BadInput, match=words):
        play(path, FakeExecutor(), replace(request("on"), **changed))
    assert stored(path) == []
