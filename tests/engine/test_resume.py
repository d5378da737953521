"""A killed run goes on where it was, on the same ground only, and what was committed stays."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from gpusolver.engine.registration import code_digests
from gpusolver.engine.run import Run
from gpusolver.events.errors import BadInput, UnreadableLedger
from gpusolver.events.model import ClaimStated, Event, HeadToHead, Origin, RoundAttempted, RoundInterrupted, RunStopped
from gpusolver.events.reader import LedgerReader
from gpusolver.events.rows import Row
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load

from .support import FakeExecutor, assert_verifies, cell_events, ignore, only, play, request, stored, verdicts

# Measurements of off and on, 6 rounds each: calibration, 2 x (round 0, ...), comparisons at the end.
STEP_S = 0.02
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, never killed."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    play(path, FakeExecutor(), request("off", "on", rounds=6))
    return path


def start_child(path: Path, *more: str, step_s: float = STEP_S) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.engine.fake_run", str(path), str(step_s), *more]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)


def committed(path: Path) -> list[Row]:
    """Rows as another process sees them while the writer is at work or dead; none before there is a ledger."""
    try:
        with LedgerReader(path) as reader:
            return list(reader.rows())
    except UnreadableLedger:  # it is being made, or its writer is closing it
        return []


def kill_after(child: subprocess.Popen[bytes], path: Path, events: int) -> list[Row]:
    """SIGKILL once that many events are there; the rows that were there before the signal."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit and child.poll() is None:
        if len(rows := committed(path)) >= events:
            child.kill()
            child.wait()
            return rows
        time.sleep(0.002)
    pytest.fail(f"the run ended or hung before event {events}: {child.communicate()[1].decode()[-500:]}")


def resume(path: Path, executor: FakeExecutor | None = None) -> None:
    with LedgerWriter(path) as ledger:
        Run(ledger, executor or FakeExecutor(), ignore).resume()


def outcomes(path: Path) -> list[Event]:
    """What the run came to: ends of cells, comparisons and answers, which no attempt's number is part of."""
    return [r.event for r in stored(path) if isinstance(r.event, (HeadToHead, RunStopped, ClaimStated))]


# Registration 1, rules 10, calibration 11: then the cells, and from about 60 the comparisons.
@pytest.mark.parametrize("events", [1, 5, 11, 12, 13, 17, 30, 48, 62, 70])
def test_b141_a_run_that_was_killed_is_finished_by_resume(tmp_path: Path, whole: Path, events: int) -> None:
    path = tmp_path / "ledger.db"
    before = kill_after(start_child(path), path, events)
    resume(path)
    after = committed(path)
    assert after[: len(before)] == before  # nothing that was there is lost or changed
    for arm in ("off", "on"):
        assert verdicts(cell_events(path, arm)) == verdicts(cell_events(whole, arm))
        assert_attempts_are_contiguous(cell_events(path, arm))
    assert outcomes(path) == outcomes(whole)
    assert_verifies(path)


def assert_attempts_are_contiguous(events: list[Event]) -> None:
    """Rounds 0, 1, 2, ...; in each attempts 1, 2, ..., all but the last of them closed by RoundInterrupted."""
    attempts = only(events, RoundAttempted)
    by_round = {round_: [a.attempt for a in group] for round_, group in groupby(attempts, key=lambda a: a.round)}
    assert list(by_round) == list(range(len(by_round)))
    for round_, numbers in by_round.items():
        assert numbers == list(range(1, len(numbers) + 1))
        cut = [e.attempt for e in only(events, RoundInterrupted) if e.round == round_]
        assert cut == numbers[:-1]


def test_a_run_that_is_killed_again_and_again_still_finishes(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "ledger.db"
    kill_after(start_child(path), path, 15)
    for events in (20, 31, 45, 64):
        if len(committed(path)) < events:
            kill_after(start_child(path, "resume"), path, events)
    resume(path)
    assert [verdicts(cell_events(path, arm)) for arm in ("off", "on")] == [
        verdicts(cell_events(whole, arm)) for arm in ("off", "on")
    ]
    assert_verifies(path)


def test_three_kills_in_one_round_stop_that_cell_and_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    begin_and_break(path, "gate", 1)
    for _ in range(2):
        with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
            Run(ledger, FakeExecutor(before=breaking("gate", 1)), ignore).resume()
    resume(path)
    off, on = cell_events(path, "off"), cell_events(path, "on")
    assert only(off, RunStopped)[0].reason == "interrupted too often"
    assert [(a.round, a.attempt) for a in only(off, RoundAttempted)] == [(0, 1), (0, 2), (0, 3)]
    assert len(verdicts(on)) == 6
    assert_verifies(path)


def test_a_resumed_executor_is_told_what_the_ledger_already_holds(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    begin_and_break(path, "gate", 4)
    held, executor = [r.event for r in stored(path)], FakeExecutor()
    resume(path, executor)
    assert executor.resumed == held


# --- the same ground --------------------------------------------------------------------------------------------------


def breaking(stage: str, nth: int):  # type: ignore[no-untyped-def]
    """Ends the process's work at the n-th measurement of a stage, as Ctrl-C does."""
    left = [nth]

    def before(now: str) -> None:
        left[0] -= now == stage
        if left[0] == 0:
            raise KeyboardInterrupt

    return before


def begin_and_break(path: Path, stage: str, nth: int) -> None:
    with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, FakeExecutor(before=breaking(stage, nth)), ignore).start(request("off", "on", rounds=6))


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    begin_and_break(path, "gate", 3)
    return path


def refused_resume(path: Path, executor: FakeExecutor) -> str:
    rows = committed(path)
    with pytest.raises(BadInput) as refusal:
        resume(path, executor)
    assert committed(path) == rows  # a refusal writes nothing
    return str(refusal.value)


def test_resume_on_another_executor_is_refused(unfinished: Path) -> None:
    other = FakeExecutor()
    other.name = "recorded"
    assert "another executor (expected local, found recorded)" in refused_resume(unfinished, other)


def test_resume_on_another_recording_is_refused(unfinished: Path) -> None:
    other = FakeExecutor()
    other.origin = Origin(head="0" * 64, events=5)
    assert "another recording" in refused_resume(unfinished, other)


def test_resume_on_another_device_is_refused(unfinished: Path) -> None:
    message = refused_resume(unfinished, FakeExecutor(device="NVIDIA H100 PCIe"))
    assert "another device (expected NVIDIA H200, found NVIDIA H100 PCIe)" in message and "--ledger" in message


def test_resume_under_other_code_is_refused(unfinished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {**code_digests(), "engine/loop.py": "0" * 64}
    monkeypatch.setattr("gpusolver.engine.run.code_digests", lambda: changed)
    message = refused_resume(unfinished, FakeExecutor())
    assert "another code" in message and "engine/loop.py" in message


def test_resume_after_a_problem_changed_is_refused(unfinished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = msgspec.structs.replace(load("kb_matmul_scalar"), digest="0" * 64)
    monkeypatch.setattr("gpusolver.engine.run.load", lambda name: changed)
    message = refused_resume(unfinished, FakeExecutor())
    assert "another problem (expected" in message and "kb_matmul_scalar" in message


def test_start_is_refused_while_a_run_is_unfinished(unfinished: Path) -> None:
    rows = committed(unfinished)
    with LedgerWriter(unfinished) as ledger, pytest.raises(BadInput, match=r"run1 is unfinished\. Go on with --resume"):
        Run(ledger, FakeExecutor(), ignore).start(request("on"))
    assert committed(unfinished) == rows


def test_resume_of_a_finished_or_empty_ledger_is_refused(whole: Path, tmp_path: Path) -> None:
    assert "expected an unfinished run to resume, found none" in refused_resume(whole, FakeExecutor())
    with LedgerWriter(tmp_path / "empty.db"):
        pass
    assert "Start one without --resume" in refused_resume(tmp_path / "empty.db", FakeExecutor())


def test_a_second_run_may_follow_a_finished_one(tmp_path: Path) -> None:
    path, executor = tmp_path / "ledger.db", FakeExecutor()
    for _ in range(2):
        play(path, executor, request("on", rounds=2))
    streams = {r.stream.partition("/")[0] for r in stored(path)}
    assert streams == {"run1", "run2"}
    assert_verifies(path)
