"""The words of `gpusolver explain` and `gpusolver qualify`: what they refuse, how they go on, and that no ledger breaks their tables."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine import cli_measure, devices
from gpusolver.engine.examination import ExaminationRequest
from gpusolver.engine.executor import Observation, Question
from gpusolver.engine.run import Run
from gpusolver.engine.worker import ncu_reading
from gpusolver.events.model import CountersCompared, ExaminationRegistered, KernelExamined, StaticRulesSeen
from gpusolver.events.writer import LedgerWriter

from ..replay.exam_forge import forge_examination
from ..replay.tamper import Line, add_artifact, first, rewrite
from .support import FakeExecutor, assert_verifies, ignore, matmul_story, only, play, request, stored
from .test_examination import afterwards, asked, story

Change = Callable[[list[Line], Path], object]
STEERING = "[/bold]\x1b[31m"
"""What rich reads as markup that was never opened, and what a terminal reads as red."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Words are not broken over lines; what is not named lands in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """A machine with a made-up GPU; its suites are three examinations of two pairs each."""
    executor = FakeExecutor(story)
    monkeypatch.setattr(cli_measure, "open_executor", lambda *_: executor)

    def suite_request(suite: str, half: str, times: int, ncu: bool, seed: int, *_: object) -> ExaminationRequest:
        return replace(asked(times), purpose=suite, seed=seed)

    monkeypatch.setattr(cli_measure, "request", suite_request)
    return executor


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examination worked out by hand, its first kernel renamed to a problem that `explain` knows; not to be altered."""
    path = forge_examination(tmp_path_factory.mktemp("exam") / "ledger.db")

    def rename(events: list[Line]) -> None:
        for event in events:
            event.body = json.loads(json.dumps(event.body).replace('"slow"', '"kb_softmax"'))

    return rewrite(path, rename)


def invoke(*words: str | Path | int) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def told(result: Result) -> str:
    """The output of a command that ended in words: no traceback, nothing that steers a terminal."""
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Traceback" not in result.output and "\x1b" not in result.output
    return result.output


def explain(*words: str | Path) -> Result:
    return invoke("explain", "kb_matmul_scalar", "--device", "cpu", *words)


# --- explain ----------------------------------------------------------------------------------------------------------


def test_explain_keeps_what_it_prints(machine: FakeExecutor) -> None:
    result = explain("--rules", "seed", "--ledger", "l.db")
    assert result.exit_code == 0, told(result)
    for words in ("load_eff", "FIRES", "would follow: fp32_no_tensorcore", "A/A noise floor", "ledger: l.db"):
        assert words in told(result), result.output
    assert machine.closed
    assert_verifies(Path("l.db"))


def test_times_of_the_stand_in_do_not_pass_for_a_gpus(forged: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(forged, tmp_path / "ledger.db"))
    standing_in = {"clock": "cpu_wall", "cache": "unknown", "unit": "ns", "blocks": [[2000, 2000, 2000, 2000]]}
    change = artifact_of("KernelExamined", "samples", json.dumps(standing_in).encode())

    def stand_in(events: list[Line]) -> None:
        change(events, path)

    rewrite(path, stand_in)
    said = told(invoke("explain", "kb_softmax", "--recording", path))
    assert "measures no GPU" in said and "CUDA events" not in said


def test_a_report_of_ncu_is_compared_with(machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """One metric in it that we count too, 60 beside 90 (a third off, over 3 %), and one rule's words."""
    occupancy = "sm__warps_active.avg.pct_of_peak_sustained_active"
    facts = {"collector": "ncu", "passes": 38, "chip": "GH100", "cache": "unknown", "metrics": {occupancy: 90.0}}
    said = {"id": "Rule", "title": f"Words {STEERING}", "message": None, "speedup_type": "local", "speedup": 12.0}
    kernels = [{"kernel": "made_up_kernel", "rules": [said]}]

    def read_report(path: Path, metrics: Any) -> dict[str, bytes]:
        assert path == Path("r.ncu-rep") and occupancy in metrics
        return {
            "counters": json.dumps(facts).encode(),
            "ncu_rules": json.dumps({"tool": "ncu", "kernels": kernels}).encode(),
        }

    monkeypatch.setattr(ncu_reading, "read_report", read_report)
    result = explain("--ledger", "l.db", "--ncu-report", "r.ncu-rep")
    events = [row.event for row in stored(Path("l.db"))]
    (compared,) = only(events, CountersCompared)
    assert [(row.ours, row.theirs, row.within) for row in compared.rows] == [(60.0, 90.0, False)]
    assert len(only(events, StaticRulesSeen)) == 1
    for words in ("0 of 1", "made_up_kernel", "Words", "12 % local"):
        assert words in told(result), result.output
    assert_verifies(Path("l.db"))


def test_a_report_is_read_before_anything_is_measured(machine: FakeExecutor) -> None:
    assert "found no such file" in told(explain("--ncu-report", "nowhere.ncu-rep"))
    assert machine.calls["gate"] == 0


def test_a_report_without_its_reader(machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the package nor ncu is there."""
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.setenv("PATH", "")
    Path("r.ncu-rep").write_bytes(b"rubbish")
    assert "Install ncu-report" in told(explain("--ncu-report", "r.ncu-rep"))


def test_words_that_explain_refuses(machine: FakeExecutor) -> None:
    Path("bytes.py").write_bytes(b"\xff\xfe")
    Path("deep.toml").write_text("a = " + "[" * 100_000)
    Path("digits.toml").write_text("a = 1" + "0" * 5000)
    Path("folder").mkdir()
    packaged = devices.default_recording()
    for words, expected in (
        (("--source", "nowhere.py"), "--source nowhere.py: expected a Python file"),
        (("--source", "folder"), "expected a Python file"),
        (("--source", "bytes.py"), "expected a Python file in UTF-8"),
        (("--source", "/dev/zero"), "at most 1000000 bytes"),
        (("--timeline", "bytes.py"), "expected an Nsight Systems export"),
        (("--timeline", packaged), "no table CUPTI_ACTIVITY_KIND_KERNEL"),
        (("--rules", "medium"), "unknown rule table 'medium'"),
        (("--rules", "deep.toml"), "not TOML"),
        (("--rules", "digits.toml"), "not TOML"),
        (("--rules", "bytes.toml"), "expected a TOML file"),
        (("--ledger", "folder"), "is a directory"),
        (("--ledger", "bytes.py"), "is not a ledger"),
        (("--ledger", packaged), "never written into"),
        (("--recording", "l.db"), "--recording belongs to --device recorded"),
        (("--ncu", "--ncu-report", "r"), "expected one of them"),
    ):
        result = explain(*words)
        assert result.exit_code == 1 and expected in told(result), (words, result.output)
    assert machine.calls["gate"] == 0
    assert Path("bytes.py").read_bytes() == b"\xff\xfe"


def test_a_rule_whose_name_steers_a_terminal_is_refused(machine: FakeExecutor) -> None:
    rule = 'version=1\ntier=1\nstop=true\nclauses=[{signal="weight",op="<",threshold=1.0}]\n'
    rest = 'gain={form="constant",cap=1.0}\nmetrics=[]\nrationale="x"\n'
    Path("r.toml").write_text(f'[[rule]]\nname="a\\u001b[31m"\n{rule}{rest}')
    assert "expected a printable name" in told(explain("--rules", "r.toml"))
    Path("r.toml").write_text(f'[[rule]]\nname="[/bold]"\n{rule}{rest}')
    result = explain("--rules", "r.toml")
    assert result.exit_code == 0 and "[/bold]" in told(result)


def test_a_source_of_any_name(machine: FakeExecutor) -> None:
    """Bytes that are no UTF-8, markup and control characters: all of them stand in some folder."""
    text = asked().subjects[0].source
    for name in (b"n\xff.py", b"[bold].py", b"a\x1b[31m.py"):
        Path(os.fsdecode(name)).write_text(text)
        result = CliRunner().invoke(
            main, ["explain", "kb_matmul_scalar", "--device", "cpu", "--source", os.fsdecode(name), "--ledger", "l.db"]
        )
        assert result.exit_code == 0, told(result)
        assert "\x1b" not in result.output
    assert_verifies(Path("l.db"))


def test_what_a_kernel_says_steers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error's text is told in the progress and in the answer."""

    class Loud(FakeExecutor):
        def gate(self, question: Question, source: str) -> Observation:
            seen = super().gate(question, source)
            said = seen.artifacts["report"].replace(b"made-up load_error", json.dumps(STEERING)[1:-1].encode())
            return replace(seen, artifacts={"report": said})

    loud = Loud(lambda text: replace(story(text), fault="load_error"))
    monkeypatch.setattr(cli_measure, "open_executor", lambda *_: loud)
    assert "the gate refused it: load_error ([/bold]" in told(explain())


class Cut(BaseException):
    """The end of a process, as far as a ledger can tell."""


def test_explain_beside_an_unfinished_run(machine: FakeExecutor) -> None:
    """Each goes on or ends on its own, in one file."""
    seen = iter(range(1, 100))

    def cut(stage: str) -> None:
        if next(seen) == 20:
            raise Cut

    with pytest.raises(Cut):
        play(Path("l.db"), FakeExecutor(before=cut), request("off", "on", rounds=6))
    assert explain("--ledger", "l.db").exit_code == 0
    with LedgerWriter(Path("l.db")) as ledger:
        Run(
            ledger, FakeExecutor(lambda text: replace(matmul_story(text), ns=matmul_story(text).ns + 7)), ignore
        ).resume()
    assert_verifies(Path("l.db"))
    assert "exam1" in told(invoke("report", "l.db")) and "run1" in invoke("report", "l.db").output


# --- explain from a ledger --------------------------------------------------------------------------------------------


def test_without_a_gpu_and_without_a_recorded_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    monkeypatch.setattr(cli_measure, "default_examination", lambda: Path("nowhere.db"))
    result = invoke("explain", "kb_softmax")
    assert result.exit_code == 1 and "holds no recorded examination" in told(result)


@pytest.mark.parametrize(
    "words", [("--ncu",), ("--energy",), ("--rules", "seed"), ("--ledger", "l.db"), ("--source", "x")]
)
def test_a_recorded_answer_ignores_no_word(forged: Path, words: tuple[str, ...]) -> None:
    result = invoke("explain", "kb_softmax", "--recording", forged, *words)
    assert result.exit_code == 1 and f"{words[0]} needs a GPU" in told(result)


def test_a_recorded_examination_is_explained(forged: Path) -> None:
    result = invoke("explain", "kb_softmax", "--recording", forged)
    assert result.exit_code == 0, told(result)
    for words in ("recorded examination on gpu0", "would follow: uncoalesced", "4 of 7", "temperature_c 40"):
        assert words in told(result), result.output
    other = invoke("explain", "kb_layernorm", "--recording", forged)
    assert "expected an examination of kb_layernorm, found broken, kb_softmax, quick" in told(other)


# --- hostile ledgers --------------------------------------------------------------------------------------------------


def subject_of(name: object) -> Change:
    return lambda events, path: [
        e.body.update(subject=name) for e in events if e.body.get("subject") == "kb_softmax" and "answers" not in e.body
    ]


def artifact_of(kind: str, field: str, content: bytes) -> Change:
    def change(events: list[Line], path: Path) -> None:
        named = add_artifact(path, content)
        body = first(events, kind).body
        where = body["extras"] if field in body.get("extras", {}) else body
        where[field] = named

    return change


def without(kind: str) -> Change:
    def change(events: list[Line], path: Path) -> None:
        events[:] = [event for event in events if event.kind != kind]

    return change


def field_of(kind: str, name: str, value: object) -> Change:
    return lambda events, path: first(events, kind).body.update({name: value})


SAMPLES = {"clock": STEERING, "cache": STEERING, "unit": "ns", "blocks": [[1, 1, 1, 1]], "before": {STEERING: STEERING}}
COUNTERS = {"collector": STEERING, "passes": 1, "chip": "", "cache": STEERING}
HOSTILE: dict[str, Change] = {
    "subjects that are not registered": subject_of(STEERING),
    "no kernel": without("KernelExamined"),
    "no answers": without("RulesAnswered"),
    "no registration": lambda e, path: e.pop(0),
    "no signals": field_of("KernelExamined", "signals", {}),
    "other signals": field_of("KernelExamined", "signals", {STEERING: 1e308, "time_us": 0.0, "warm_ratio": 0.0}),
    "a device of markup": field_of("DeviceCalibrated", "device", STEERING),
    "a purpose of markup": field_of("ExaminationRegistered", "purpose", STEERING),
    "a half of markup": lambda e, path: e[0].body["subjects"][0].update(half=STEERING),
    "a contract of markup": lambda e, path: e[0].body["subjects"][0].update(contract=STEERING),
    "a pair of markup": lambda e, path: e[0].body["pairs"][0].update(name=STEERING),
    "a rule of markup": lambda e, path: first(e, "RulesAnswered").body["answers"][0].update(rule=STEERING),
    "a metric of markup": lambda e, path: first(e, "CountersCompared").body["rows"][2].update(metric=STEERING),
    "artifacts that are not there": field_of("KernelExamined", "counters", "ab" * 32),
    "counters that are a list": artifact_of("KernelExamined", "counters", b"[]"),
    "counters too deep": artifact_of("KernelExamined", "counters", b"[" * 100_000),
    "counters without end": artifact_of(
        "KernelExamined", "counters",
        json.dumps({**COUNTERS, "metrics": {"sm__warps_active.avg.pct_of_peak_sustained_active": 10**400}}).encode(),
    ),
    "samples of markup": artifact_of("KernelExamined", "samples", json.dumps(SAMPLES).encode()),
    "samples of bytes": artifact_of("KernelExamined", "samples", b"\xff"),
    "a timeline of markup": artifact_of(
        "KernelExamined", "timeline",
        json.dumps({"collector": "nsys", "calls": [[[0, 1, STEERING]]], "operators": [[STEERING, 1]]}).encode(),
    ),
    "a timeline of nothing": artifact_of("KernelExamined", "timeline", b"{}"),
    "rules in another form": artifact_of("StaticRulesSeen", "answers", b'{"kernels": [1]}'),
    "rules that are no JSON": artifact_of("StaticRulesSeen", "answers", b"{"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_ledger_breaks_the_tables(forged: Path, tmp_path: Path, name: str) -> None:
    """Whatever stands in it, both commands answer in words."""
    path = Path(shutil.copy(forged, tmp_path / "ledger.db"))

    def change(events: list[Line]) -> list[Line]:
        HOSTILE[name](events, path)
        return events

    rewrite(path, change)
    assert invoke("report", path).exit_code == 0
    told(invoke("report", path))
    told(invoke("explain", "kb_softmax", "--recording", path))


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_a_narrow_terminal_cuts_nothing(forged: Path, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Values are folded at most: every character of them is there."""
    monkeypatch.setenv("COLUMNS", columns)
    said = told(invoke("report", forged))
    assert "\u2026" not in said and max(map(len, said.splitlines())) <= int(columns)
    if columns != "40":
        assert "1.3333" in said and "2.04 %" in said


# --- qualify ----------------------------------------------------------------------------------------------------------


def qualify(*words: str | int) -> Result:
    return invoke("qualify", "--device", "cpu", "--ledger", "q.db", "--times", 2, *words)


def purposes() -> list[str]:
    return [e.purpose for e in only((row.event for row in stored(Path("q.db"))), ExaminationRegistered)]


@pytest.mark.parametrize(("lost", "timed"), [((1,), 3), ((2, 3), 2)])
def test_a_kernel_that_ends_its_process_whenever_it_is_timed_has_no_profile(
    machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch, lost: tuple[int, ...], timed: int
) -> None:
    """Once may be chance and is measured again; the others of the examination go on, and the ledger verifies."""
    broken = FakeExecutor(story, faults={("compare", turn): "worker_lost" for turn in lost})
    monkeypatch.setattr(cli_measure, "open_executor", lambda *_: broken)
    result = qualify("--suite", "slowdown")
    assert result.exit_code == 0, told(result)
    examined = only((row.event for row in stored(Path("q.db"))), KernelExamined)
    assert [e.reason for e in examined if e.samples is None] == ["not timed: worker_lost"] * (3 - timed)
    assert len(examined) == 3 and {e.outcome for e in examined} == {"passed"}
    assert_verifies(Path("q.db"))


@pytest.mark.parametrize("turn", [1, 7, 8, 10, 13])
def test_the_same_command_goes_on_with_its_later_suites(
    machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """Three kernels and four comparisons a suite: cut off in either suite, nothing is measured twice."""
    words = ("--suite", "identical,slowdown,identical")
    broken = FakeExecutor(story, faults={("compare", turn): "no_device"})
    monkeypatch.setattr(cli_measure, "open_executor", lambda *_: broken)
    cut = qualify(*words)
    assert cut.exit_code == 1 and "Run the same command again" in told(cut)
    monkeypatch.setattr(cli_measure, "open_executor", lambda *_: FakeExecutor(afterwards))
    result = qualify(*words)
    assert result.exit_code == 0, told(result)
    assert purposes() == ["identical", "slowdown"]
    assert len(only((row.event for row in stored(Path("q.db"))), KernelExamined)) == 6
    assert_verifies(Path("q.db"))


def test_a_suite_that_is_there_already_is_not_measured_again(machine: FakeExecutor) -> None:
    """As after a command that was cut off between two suites."""
    assert qualify("--suite", "identical").exit_code == 0
    result = qualify("--suite", "identical,slowdown")
    assert result.exit_code == 0 and "identical: in q.db already, as exam1" in told(result)
    assert purposes() == ["identical", "slowdown"]


def test_a_finished_command_measures_again(machine: FakeExecutor) -> None:
    for _ in range(2):
        assert qualify("--suite", "identical,slowdown").exit_code == 0
    assert purposes() == ["identical", "slowdown"] * 2
    assert_verifies(Path("q.db"))


def test_words_that_qualify_refuses(machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, expected in (
        (("--suite", ","), "--suite: expected some of"),
        (("--times", 0), "--times"),
        (("--seed", 2**63), "--seed"),
        (("--suite", "identical", "--half", "held-out"), "--half belongs to the suite planted"),
        (("--ledger", str(devices.default_recording())), "never written into"),
    ):
        result = qualify(*words)
        assert result.exit_code in (1, 2) and expected in told(result), (words, result.output)
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    assert "found none" in told(invoke("qualify"))
    monkeypatch.undo()
    assert "found 'foo'" in told(qualify("--suite", "foo"))
    assert not Path("q.db").exists()
