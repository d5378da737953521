"""The words of `gpusolver run` and `gpusolver report`: what they refuse, how they say it, and that they lose nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpusolver.__main__ import main
from gpusolver.engine import devices
from gpusolver.engine.devices import all_problems
from gpusolver.engine.run import Run
from gpusolver.events.errors import ToolFailed
from gpusolver.events.lock import WriterLock
from gpusolver.events.model import RoundJudged, RunRegistered
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import names

from .support import FakeExecutor, assert_verifies, cell_events, ignore, only, play, request, stored

ROUNDS = 6


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "recording.db"
    play(path, FakeExecutor(), request("off", "on", rounds=ROUNDS))
    return path


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Words are not broken over lines; what is not named lands in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def run(recording: Path, *words: str | Path) -> Result:
    """`gpusolver run` on a recording of kb_matmul_scalar; later words win over earlier ones."""
    common = ["--problems", "kb_matmul_scalar", "--rounds", ROUNDS, "--device", "recorded", "--recording", recording]
    return invoke("run", *map(str, common), *words)


def refused(result: Result, *expected: str) -> None:
    """A refusal is one message in words, no traceback: exit 1 (request or file), 2 (click's own usage errors)."""
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Error: " in result.output and "Traceback" not in result.output
    for words in expected:
        assert words in result.output, result.output


# --- what works -------------------------------------------------------------------------------------------------------


def test_a_recorded_run_prints_its_tables_and_leaves_a_ledger(recording: Path) -> None:
    result = run(recording, "--ledger", "out.db")
    assert result.exit_code == 0, result.output
    for words in (
        "recorded measurements",
        "NVIDIA H200",
        "nothing is measured here",
        "kb_matmul_scalar",
        "5.49x",
        "1.50x",
    ):
        assert words in result.output, words  # 300 / 54.7 us between the arms, of which TF32 is 1.5
    assert "gpusolver replay out.db --verify" in result.output
    assert_verifies(Path("out.db"))
    assert sorted(os.listdir()) == ["out.db"]  # no lock, no -wal


def test_all_of_a_recording_is_what_it_holds(recording: Path) -> None:
    result = run(recording, "--problems", "all", "--ledger", "out.db")
    assert result.exit_code == 0, result.output
    registered = stored(Path("out.db"))[0].event
    assert isinstance(registered, RunRegistered)
    assert {problem.name for problem in registered.problems} == {"kb_matmul_scalar"}


def test_all_is_every_problem_where_something_is_measured() -> None:
    assert all_problems("cpu", None) == all_problems("cuda", None) == names()
    held = set(all_problems("recorded", None))
    assert len(held) == 7
    assert set(names()) - held == {"2d_convolution", "groupnorm", "llama", "matmul_tri"}


def test_report_prints_the_tables_of_a_ledger(recording: Path) -> None:
    before = recording.read_bytes()
    result = invoke("report", recording)
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines() if " off " in line or " on " in line]
    # arm, start us, end us, rounds, rounds that counted against their rule
    assert ["off", "300.0", "300.0", "6", "6"] in [row[1:6] for row in rows]
    assert ["on", "300.0", "54.7", "6", "4"] in [row[:5] for row in rows]
    assert "fp32_no_tensorcore" in result.output and "rounds exhausted" in result.output
    assert "not upheld" in result.output  # 300 / 82 us = 3.66, under the registered 5.75
    assert recording.read_bytes() == before


def test_report_prints_a_run_that_is_not_finished(tmp_path: Path) -> None:
    def stop(stage: str) -> None:
        if stage == "sweep":
            raise KeyboardInterrupt

    with LedgerWriter(tmp_path / "l.db") as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, FakeExecutor(before=stop), ignore).start(request("on"))
    result = invoke("report", tmp_path / "l.db")
    assert result.exit_code == 0 and "unfinished" in result.output


def test_repetitions_by_problem_or_for_all(recording: Path) -> None:
    for words in ("1", "kb_matmul_scalar=1", " kb_matmul_scalar=1 , "):
        name = f"{len(os.listdir())}.db"
        assert run(recording, "--repetitions", words, "--ledger", name).exit_code == 0
        registered = stored(Path(name))[0].event
        assert isinstance(registered, RunRegistered)
        assert [(cell.arm, cell.repetition) for cell in registered.plan] == [("off", 1), ("on", 1)]


# --- words that are no request ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--problems", "kb_matmul_scaler"], ["kb_matmul_scaler", "did you mean kb_matmul_scalar?"]),
        (["--arms", "off,maybe"], ["'maybe'", "expected off, on, off+tabu, on+tabu or random"]),
        (["--contract", "fp8-allowed"], ["--contract", "fp8-allowed", "fp32-strict, tf32-allowed, bf16-allowed"]),
        (["--pool", "all"], ["--pool", "'all'", "flags", "dot"]),
        (["--device", "tpu"], ["--device", "'tpu'", "recorded"]),
        (["--rounds", "0"], ["--rounds: expected 1 to 1000, found 0"]),
        (["--rounds", "1001"], ["--rounds: expected 1 to 1000, found 1001"]),
        (["--rounds", "many"], ["--rounds", "'many'"]),
        (["--repetitions", "two"], ["--repetitions", "problem=number by comma", "'two'"]),
        (["--repetitions", "kb_matmul_scalar=two"], ["--repetitions", "'kb_matmul_scalar=two'"]),
        (["--repetitions", "kb_matmul_scalar="], ["--repetitions", "'kb_matmul_scalar='"]),
        (["--repetitions", "0"], ["--repetitions kb_matmul_scalar", "expected 1 to 1000, found 0"]),
        (["--repetitions", "nothing=2"], ["--repetitions", "found nothing"]),
        (["--repetitions", "sigmoid=2"], ["--repetitions", "problems of this run", "found sigmoid"]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["--problems", ","], ["--problems"]),
        (["--arms", ","], ["--arms"]),
        (["--contract", ","], ["--contract"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("--") else "",
)
def test_words_that_are_no_request_are_refused_and_leave_nothing_behind(
    recording: Path, words: list[str], expected: list[str]
) -> None:
    refused(run(recording, *words), *expected)
    assert os.listdir() == []


# --- devices and recordings -------------------------------------------------------------------------------------------


def test_device_cuda_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    refused(invoke("run", "--device", "cuda"), "expected an NVIDIA GPU, found none", "--device recorded")
    assert os.listdir() == []


def test_a_recording_belongs_to_the_recorded_device(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 1)
    for device in ("cuda", "cpu"):
        refused(
            run(recording, "--device", device), "--recording belongs to --device recorded", f"found --device {device}"
        )


def test_a_recording_that_does_not_exist_is_named(tmp_path: Path) -> None:
    refused(run(tmp_path / "no.db"), "no.db", "expected a ledger file")
    assert os.listdir() == []


def test_a_recording_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "notes.txt").write_text("no ledger\n" * 20)
    refused(run(folder / "notes.txt"), "notes.txt is not a ledger")
    refused(run(folder), "is a directory")


def test_a_recording_is_never_written_into(recording: Path, tmp_path: Path) -> None:
    """The same file for both would append a second run to what it answers from, by whatever name it is called."""
    shutil.copy(recording, tmp_path / "own.db")
    os.symlink("own.db", "alias.db")
    for name in ("own.db", tmp_path / "own.db", "alias.db"):
        refused(run(tmp_path / "own.db", "--ledger", name), "own.db")
    assert (tmp_path / "own.db").read_bytes() == recording.read_bytes()


# --- ledgers ----------------------------------------------------------------------------------------------------------


def newer(source: Path, path: Path) -> None:
    shutil.copy(source, path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


def test_a_ledger_of_a_newer_schema_is_left_alone(recording: Path, tmp_path: Path) -> None:
    newer(recording, tmp_path / "newer.db")
    before = (tmp_path / "newer.db").read_bytes()
    refused(run(recording, "--ledger", "newer.db"), "schema version 2, expected 1", "a newer gpusolver wrote it")
    refused(run(tmp_path / "newer.db"), "schema version 2, expected 1")
    refused(invoke("report", "newer.db"), "schema version 2, expected 1")
    assert (tmp_path / "newer.db").read_bytes() == before


def test_a_second_writer_is_refused_and_named(recording: Path, tmp_path: Path) -> None:
    lock = WriterLock(tmp_path / "held.db")
    refused(run(recording, "--ledger", "held.db"), f"is being written by process {os.getpid()}", "Nothing was written")
    lock.release()
    assert not (tmp_path / "held.db").exists()
    assert run(recording, "--ledger", "held.db").exit_code == 0


@pytest.mark.parametrize(
    ("ledger", "words"), [("no/folder/l.db", "does not exist"), (".", "is a directory")], ids=["no folder", "folder"]
)
def test_a_ledger_where_none_can_be_is_refused(recording: Path, ledger: str, words: str) -> None:
    refused(run(recording, "--ledger", ledger), words)


def test_a_file_that_is_no_ledger_is_not_overwritten(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work\n" * 100)
    refused(run(recording, "--ledger", "thesis.txt"), "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "ten years of work\n" * 100


def test_report_of_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    refused(invoke("report", "a.txt"), "a.txt is not a ledger")
    refused(invoke("report", "nothing.db"), "nothing.db", "expected a ledger file")
    assert os.listdir() == ["a.txt"]


def test_resume_without_a_ledger_makes_none() -> None:
    refused(invoke("run", "--ledger", "none.db", "--resume"), "none.db")
    assert os.listdir() == []


def test_a_second_run_in_an_unfinished_ledger_is_refused(recording: Path, tmp_path: Path) -> None:
    def stop(stage: str) -> None:
        if stage == "sweep":
            raise KeyboardInterrupt

    with LedgerWriter(tmp_path / "l.db") as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, FakeExecutor(before=stop), ignore).start(request("on"))
    before = stored(tmp_path / "l.db")
    refused(run(recording, "--ledger", "l.db"), "run1 is unfinished", "--resume")
    resumed = invoke("run", "--ledger", "l.db", "--resume", "--device", "recorded", "--recording", recording)
    refused(resumed, "another executor (expected local, found recorded)")
    assert stored(tmp_path / "l.db") == before


# --- the disk is full -------------------------------------------------------------------------------------------------


class Small(LedgerWriter):
    """A ledger on a disk with room for so many pages of 4 KiB."""

    def __init__(self, path: Path, pages: int) -> None:
        super().__init__(path)
        self._connection.set_authorizer(None)
        self._connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.mark.parametrize("pages", [14, 20, 26, 30])
def test_a_full_disk_ends_the_run_in_words_and_loses_no_round(tmp_path: Path, pages: int) -> None:
    path = tmp_path / "l.db"
    with Small(path, pages) as ledger, pytest.raises(ToolFailed) as full:
        Run(ledger, FakeExecutor(), ignore).start(request("off", "on", rounds=ROUNDS))
    assert "ledger full at event" in str(full.value) and "make room on the disk" in str(full.value)
    before = stored(path)
    assert_verifies(path)
    with LedgerWriter(path) as ledger:
        Run(ledger, FakeExecutor(), ignore).resume()
    assert stored(path)[: len(before)] == before
    assert [len(only(cell_events(path, arm), RoundJudged)) for arm in ("off", "on")] == [ROUNDS, ROUNDS]
    assert_verifies(path)
