"""A recording answers again what was measured, in the same order, and refuses in words what was not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.engine.executor import Observation, Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.rules import seed_rules
from gpusolver.engine.run import Run
from gpusolver.events.artifacts import digest
from gpusolver.events.errors import BadInput, UnreadableLedger
from gpusolver.events.model import (
    DeviceCalibrated,
    HeadToHead,
    KernelGated,
    NoiseFloorMeasured,
    Profiled,
    RoundInterrupted,
    RoundJudged,
    RunRegistered,
    TilesSwept,
)
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load

from .conformance import conforms
from .support import FakeExecutor, assert_verifies, cell_events, ignore, only, play, request, stored, verdicts

ASKED = request("off", "on", rounds=6)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "recording.db"
    play(path, FakeExecutor(), ASKED)
    return path


def rerun(recording: Path, path: Path, asked: RunRequest) -> None:
    executor = RecordedExecutor(recording)
    try:
        with LedgerWriter(path) as ledger:
            Run(ledger, executor, ignore).start(asked)
    finally:
        executor.close()


def refusal(recording: Path, path: Path, asked: RunRequest) -> str:
    with pytest.raises(BadInput) as refused:
        rerun(recording, path, asked)
    return str(refused.value)


def test_the_same_request_gives_the_same_events(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    rerun(recording, path, ASKED)
    first, again = stored(recording), stored(path)
    assert [(r.seq, r.stream, r.version, r.type) for r in again] == [
        (r.seq, r.stream, r.version, r.type) for r in first
    ]
    differing: dict[str, set[str]] = {}
    for ours, theirs in zip(again, first, strict=True):
        for field in ours.event.__struct_fields__:
            if getattr(ours.event, field) != getattr(theirs.event, field):
                differing.setdefault(ours.type, set()).add(field)
    assert differing.pop("RunRegistered") == {"executor", "origin"}
    assert differing and all(fields == {"origin_seq"} for fields in differing.values())
    assert_verifies(path)


def test_each_event_names_the_place_of_its_measurement(recording: Path, tmp_path: Path) -> None:
    """With the same request the ledgers run in step, so a measurement's origin is the event at its own seq."""
    path = tmp_path / "again.db"
    rerun(recording, path, ASKED)
    measured = 0
    for r in stored(path):
        if isinstance(r.event, HeadToHead) and r.event.outcome == "identical":
            assert r.event.origin_seq is None
        elif isinstance(r.event, NoiseFloorMeasured) and r.event.round == 0:
            assert r.event.origin_seq == r.seq - 1  # its samples are those of the profile before it
        elif isinstance(r.event, (DeviceCalibrated, HeadToHead, KernelGated, NoiseFloorMeasured, Profiled, TilesSwept)):
            assert r.event.origin_seq == r.seq
            measured += 1
    assert measured > 20


def test_the_registration_names_the_recording(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    rerun(recording, path, ASKED)
    with LedgerReader(recording) as reader:
        events, head = reader.head()
    registered = stored(path)[0].event
    assert isinstance(registered, RunRegistered) and registered.origin is not None
    assert (registered.executor, registered.origin.head, registered.origin.events) == ("recorded", head, events)
    assert registered.environment["device"] == "NVIDIA H200"


def test_the_recording_itself_is_not_changed(recording: Path, tmp_path: Path) -> None:
    before = recording.read_bytes()
    rerun(recording, tmp_path / "again.db", ASKED)
    assert recording.read_bytes() == before
    assert {p.name for p in recording.parent.iterdir()} == {recording.name}


def test_a_recording_may_lie_where_nothing_can_be_written(recording: Path, tmp_path: Path) -> None:
    copy = tmp_path / "media" / "recording.db"
    copy.parent.mkdir()
    shutil.copy(recording, copy)
    copy.chmod(0o444)
    copy.parent.chmod(0o555)
    rerun(copy, tmp_path / "again.db", ASKED)
    copy.parent.chmod(0o755)
    assert_verifies(tmp_path / "again.db")


def test_one_of_the_recorded_arms_is_answered(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "less.db"
    rerun(recording, path, request("on", rounds=6))
    assert verdicts(cell_events(path, "on")) == verdicts(cell_events(recording, "on"))
    assert_verifies(path)


def test_arms_in_another_order_are_answered_alike(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "turned.db"
    rerun(recording, path, request("on", "off", rounds=6))
    for arm in ("off", "on"):
        assert verdicts(cell_events(path, arm)) == verdicts(cell_events(recording, arm))
    assert_verifies(path)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request("off", "on", rounds=7), ["--rounds", "expected at most 6, found 7"]),
        (request("on", problem="sigmoid", rounds=6), ["sigmoid", "found none such", "kb_matmul_scalar"]),
        (request("on", contract="fp32-strict", rounds=6), ["fp32-strict", "found none such", "tf32-allowed"]),
        (request("on", "off+tabu", rounds=6), ["arm off+tabu #1", "found none such", "off #1, on #1"]),
        (replace(ASKED, seed=7), ["--seed", "expected 0, found 7"]),
        (replace(ASKED, repetitions={"kb_matmul_scalar": 2}), ["off #2", "found none such"]),
        (replace(ASKED, pool="dot"), ["pool dot", "found none such"]),
    ],
    ids=[
        "more rounds",
        "other problem",
        "other contract",
        "other arm",
        "other seed",
        "second repetition",
        "other pool",
    ],
)
def test_a_request_beyond_the_recording_is_refused_before_anything_is_written(
    recording: Path, tmp_path: Path, asked: RunRequest, words: list[str]
) -> None:
    message = refusal(recording, tmp_path / "other.db", asked)
    for word in [str(recording), *words, "--device cuda measures anew"]:
        assert word in message
    assert stored(tmp_path / "other.db") == []


def test_a_measurement_that_was_never_made_is_refused_and_what_came_before_stands(
    recording: Path, tmp_path: Path
) -> None:
    """After three rounds the winner is another kernel than after six, and was compared with nothing."""
    path = tmp_path / "fewer.db"
    message = refusal(recording, path, request("on", rounds=3))
    assert "compare (final:" in message and "expected a recorded measurement, found 0" in message
    assert verdicts(cell_events(path, "on")) == verdicts(cell_events(recording, "on"))[:3]
    assert_verifies(path)


def test_a_ledger_without_measurements_is_no_recording(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "empty.db"):
        pass
    with pytest.raises(BadInput, match="expected a ledger with measurements, found none"):
        RecordedExecutor(tmp_path / "empty.db")


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 10], ids=["empty", "text"])
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.db").write_bytes(content)
    with pytest.raises(UnreadableLedger, match="is not a ledger"):
        RecordedExecutor(tmp_path / "file.db")


# --- recordings with faults, and runs that resume ---------------------------------------------------------------------


def test_a_fault_that_was_judged_is_answered_as_that_fault(tmp_path: Path) -> None:
    first, again = tmp_path / "recording.db", tmp_path / "again.db"
    play(first, FakeExecutor(faults={("compare", 2): "timeout"}), request("on"))
    rerun(first, again, request("on"))
    assert verdicts(cell_events(again, "on")) == verdicts(cell_events(first, "on"))
    assert ("uncoalesced", "AMBIGUOUS", "timeout") in verdicts(cell_events(again, "on"))
    assert_verifies(again)


def test_an_interrupted_attempt_left_no_measurement_and_its_round_is_answered_once(tmp_path: Path) -> None:
    first, again = tmp_path / "recording.db", tmp_path / "again.db"
    play(first, FakeExecutor(faults={("gate", 3): "context_lost"}), request("on"))
    rerun(first, again, request("on"))
    events = cell_events(again, "on")
    assert not only(events, RoundInterrupted)
    assert verdicts(events) == verdicts(cell_events(first, "on"))


def test_a_comparison_that_failed_is_answered_as_that_failure(tmp_path: Path) -> None:
    """The first comparison after the rounds: five before it are the profiles and floors of three kernels."""
    first, again = tmp_path / "recording.db", tmp_path / "again.db"
    play(first, FakeExecutor(faults={("compare", 6): "timeout"}), request("on"))
    (failed,) = [h.comparison for h in heads(first) if h.outcome == "timeout"]
    rerun(first, again, request("on"))
    assert [h.comparison for h in heads(again) if h.outcome == "timeout"] == [failed]
    assert_verifies(again)


def heads(path: Path) -> list[HeadToHead]:
    return only((r.event for r in stored(path)), HeadToHead)


class Breaking(RecordedExecutor):
    """Ends the process's work at the n-th gate, as Ctrl-C does."""

    gates_left = 0

    def gate(self, question: Question, source: str) -> Observation:
        self.gates_left -= 1
        if self.gates_left == 0:
            raise KeyboardInterrupt
        return super().gate(question, source)


@pytest.mark.parametrize("gates", [1, 3, 7, 8, 12])
def test_a_recorded_run_that_was_cut_off_resumes_with_the_answers_that_follow(
    recording: Path, tmp_path: Path, gates: int
) -> None:
    path, executor = tmp_path / "again.db", Breaking(recording)
    executor.gates_left = gates
    with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, executor, ignore).start(ASKED)
    executor.close()
    executor = Breaking(recording)
    with LedgerWriter(path) as ledger:
        Run(ledger, executor, ignore).resume()
    executor.close()
    for arm in ("off", "on"):
        ours, theirs = cell_events(path, arm), cell_events(recording, arm)
        assert verdicts(ours) == verdicts(theirs)
        ranges = [(j.interval, j.candidate) for j in only(ours, RoundJudged)]
        assert ranges == [(j.interval, j.candidate) for j in only(theirs, RoundJudged)]
        assert [p.samples for p in only(ours, Profiled)] == [p.samples for p in only(theirs, Profiled)]
    assert_verifies(path)


def test_a_recorded_run_may_be_recorded_from(recording: Path, tmp_path: Path) -> None:
    """The origin is the ledger that was asked, not the one before it."""
    second, third = tmp_path / "second.db", tmp_path / "third.db"
    rerun(recording, second, ASKED)
    rerun(second, third, ASKED)
    with LedgerReader(second) as reader:
        head = reader.head()[1]
    registered = stored(third)[0].event
    assert isinstance(registered, RunRegistered) and registered.origin is not None and registered.origin.head == head
    assert_verifies(third)


# --- extras and statistics --------------------------------------------------------------------------------------------


def asking_for_more(tmp_path: Path) -> RunRequest:
    """The seed rules, and a stop that rests on warm samples and a timeline: the stand-in has the former only."""
    more = """
        [[rule]]
        name = "made_up"
        version = 1
        tier = 0
        stop = true
        clauses = [{ signal = "warm_ratio", op = ">", threshold = 90.0 }, { signal = "gap_frac", op = ">", threshold = 0.9 }]
        gain = { form = "constant", cap = 1.0 }
        metrics = []
        rationale = "Never fires."
    """
    table = tmp_path / "more.toml"
    table.write_text("".join(f'[[rule]]\nseed = "{rule.name}"\n' for rule in seed_rules()) + more)
    return replace(request("on"), rules=str(table))


def test_extras_are_answered_with_the_profile_that_they_belong_to(tmp_path: Path) -> None:
    """The table asks for more than samples and counters; what the executor could not give is lacking again."""
    first, again, asked = tmp_path / "recording.db", tmp_path / "again.db", asking_for_more(tmp_path)
    play(first, FakeExecutor(), asked)
    rerun(first, again, asked)
    ours, theirs = (only(cell_events(path, "on"), Profiled) for path in (again, first))
    assert any(profiled.extras for profiled in theirs)
    assert [profiled.extras for profiled in ours] == [profiled.extras for profiled in theirs]
    assert [profiled.signals for profiled in ours] == [profiled.signals for profiled in theirs]
    assert_verifies(again)


def test_an_extra_is_answered_once_for_each_time_that_it_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "recording.db"
    play(path, FakeExecutor(), asking_for_more(tmp_path))
    profiled = only(cell_events(path, "on"), Profiled)[0]
    assert profiled.extras and set(profiled.extras) == {"warm"}
    executor = RecordedExecutor(path)
    asked = Question(cell=profiled.cell, problem=load(profiled.cell.problem), purpose="warm", seed=0)
    source = executor._recording.reader.artifact(profiled.source).decode()
    seen = executor.extra(asked, source, "warm")
    assert seen.status == "ok" and digest(seen.artifacts["warm"]) == profiled.extras["warm"]
    assert seen.origin_seq is not None
    for role in ("warm", "timeline", "horoscope"):
        again = executor.extra(asked, source, role)
        assert (again.status, again.artifacts) == ("extra_unrecorded", {}) and role in again.text
    assert [seen.status for seen in executor.ncu([(asked, source)] * 2, ())] == ["ncu_unrecorded"] * 2
    executor.close()


def test_a_recorded_run_registers_the_statistics_of_the_recording(recording: Path, tmp_path: Path) -> None:
    recorded = stored(recording)[0].event
    assert isinstance(recorded, RunRegistered)
    executor = RecordedExecutor(recording)
    assert executor.statistics() == recorded.statistics
    executor.close()
    rerun(recording, tmp_path / "again.db", ASKED)
    again = stored(tmp_path / "again.db")[0].event
    assert isinstance(again, RunRegistered) and again.statistics == recorded.statistics
    assert FakeExecutor().statistics() is None


def test_samples_of_several_looks_are_answered_whole(recording: Path) -> None:
    profiled = only(cell_events(recording, "on"), Profiled)[0]
    executor = RecordedExecutor(recording)
    asked = Question(cell=profiled.cell, problem=load(profiled.cell.problem), purpose="profile", seed=0)
    left, right = (executor._recording.reader.artifact(name).decode() for name in (profiled.against, profiled.source))
    seen = executor.compare(asked, left, right, 1, 0)
    assert digest(seen.artifacts["samples"]) == profiled.samples
    executor.close()


# --- conformance ------------------------------------------------------------------------------------------------------


def test_the_made_up_executor_conforms() -> None:
    conforms(FakeExecutor())


def test_the_recorded_executor_conforms(recording: Path) -> None:
    executor = RecordedExecutor(recording)
    try:
        conforms(executor)
    finally:
        executor.close()


@pytest.mark.torch_cpu
def test_the_local_executor_conforms_on_the_cpu() -> None:
    executor = LocalExecutor("cpu")
    try:
        conforms(executor, blocks=2)
    finally:
        executor.close()
