"""Who must not take a run by energy for one by latency, and what the words of `run --objective` refuse. Every refusal loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.cli_objective import objective_of
from gpusolver.engine.examination import Examination, ExaminationRequest
from gpusolver.engine.experience import learnt
from gpusolver.engine.registration import STATISTICS, check_request
from gpusolver.engine.reproduce import reproduction
from gpusolver.engine.samples import joined
from gpusolver.events.errors import BadInput
from gpusolver.events.model import Heat, Objective, Stage
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.projections.reproduction import statements
from gpusolver.replay.origin import First
from gpusolver.replay.policy import Played
from gpusolver.replay.transfer import transfer
from gpusolver.replay.verify import verify

from ..replay.tamper import Line, first, rewrite
from .metered import ENERGY, THERMAL, MeteredExecutor
from .support import FakeExecutor, ignore, play, request

PARAMETERS = """load = 0.5
bound = 3.0
idle_w = 75.0
calls_per_s = 2000.0
stages = [{ k_per_w = 0.05, tau_s = 2.0 }]
"""


@pytest.fixture(scope="module")
def frugal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by energy; not to be altered."""
    path = tmp_path_factory.mktemp("frugal") / "energy.db"
    play(path, MeteredExecutor(), replace(request("off", "on", rounds=4), objective=ENERGY))
    return path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by latency, and behind it one by energy, in one ledger."""
    path = tmp_path_factory.mktemp("both") / "both.db"
    play(path, MeteredExecutor(), request("off", "on", rounds=4))
    play(path, _Later(), replace(request("off", "on", rounds=4), objective=ENERGY))
    return path


class _Later(MeteredExecutor):
    """Another day: no sample is one of the first run's."""

    def _noise(self, question: object, left: str, count: int) -> list[int]:
        return super()._noise(question, f"later {left}", count)  # type: ignore[arg-type]


def invoke(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, [str(word) for word in words])


# --- words ---


def test_what_the_words_register(tmp_path: Path) -> None:
    (tmp_path / "heat.toml").write_text(PARAMETERS)
    assert objective_of("latency", None, None) is UNSET
    assert objective_of("energy", None, None) == Objective(by="energy", bound=2.0)
    assert objective_of("energy", None, 1.25) == Objective(by="energy", bound=1.25)
    heat = Heat(calls_per_s=2000.0, idle_w=75.0, stages=(Stage(k_per_w=0.05, tau_s=2.0),))
    due = Objective(by="thermal", bound=3.0, heat=heat)
    assert objective_of("thermal", tmp_path / "heat.toml", None) == due
    assert objective_of("thermal", tmp_path / "heat.toml", 1.5) == replace(due, bound=1.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PARAMETERS.replace("calls_per_s = 2000.0\n", ""), "expected calls_per_s, the fixed rate"),
        (PARAMETERS.replace("2000.0", "0.0"), "expected load, bound"),
        (PARAMETERS.replace("2000.0", "1e9"), "from 1e-06 to 1e+07"),
        (PARAMETERS.replace("tau_s = 2.0", "tau_s = 1e-9"), "from 1e-06 to 1e+07"),
        (PARAMETERS.replace("bound = 3.0", "bound = inf"), "expected load, bound"),
    ],
)
def test_parameters_that_cannot_be_registered(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "heat.toml").write_text(text)
    with pytest.raises(BadInput, match=words.replace("+", r"\+")):
        objective_of("thermal", tmp_path / "heat.toml", None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--objective", "thermal"), "expected --thermal FILE with calls_per_s"),
        (("--thermal", "x.toml"), "belongs to --objective thermal"),
        (("--latency-bound", "2"), "belongs to --objective energy or thermal"),
        (("--objective", "energy", "--rules", "from:x.db"), "expected"),
        (("--objective", "power"), "is not one of"),
        (("--objective", "energy"), "expected that of the recording, latency"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("run", "--problems", "kb_softmax", "--device", "recorded", *words)
    assert result.exit_code in (1, 2) and said in result.output and "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_a_table_that_was_learnt_is_refused(frugal: Path) -> None:
    with pytest.raises(BadInput, match="what was learnt there is what is faster"):
        check_request(replace(request("on"), objective=ENERGY, rules=f"from:{_latency(frugal.parent)}"))


def _latency(folder: Path) -> Path:
    path = folder / "latency.db"
    if not path.exists():
        play(path, FakeExecutor(), request("on", rounds=2))
    return path


@pytest.mark.parametrize(("blocks", "fits"), [(9, False), (10, True), (320, True), (321, False)])
def test_blocks_of_energies(blocks: int, fits: bool) -> None:
    asked = replace(request("on"), objective=ENERGY, blocks=blocks)
    if fits:
        check_request(asked)
        return
    with pytest.raises(BadInput, match="--blocks: expected 10 to 320"):
        check_request(asked)


# --- readers of medians ---


def test_experience_refuses_it(frugal: Path) -> None:
    with pytest.raises(BadInput, match="expected a ledger whose verdicts are by latency, found run1"):
        learnt(f"from:{frugal}", "run1", 0, None)


def test_a_forged_lesson_from_it_is_found(frugal: Path, tmp_path: Path) -> None:
    """The registration names the ledger of a run by energy: whatever it says that it learnt there."""
    source = tmp_path / "source.db"
    play(source, FakeExecutor(), request("on", rounds=2))
    path = tmp_path / "learnt.db"
    play(path, FakeExecutor(), replace(request("on", rounds=2), rules=f"from:{source}"))
    assert not verify(path, True, experience=[str(source)]).findings
    with LedgerReader(frugal) as reader:
        events, head = reader.head()

    def change(found: list[Line]) -> None:
        first(found, "RunRegistered").body["experience"].update(head=head, events=events)

    report = verify(rewrite(path, change), True, experience=[str(frugal)])
    assert ("experience", "a ledger whose verdicts are by latency") in {(f.kind, f.expected) for f in report.findings}


def test_runs_of_either_kind_in_one_ledger_verify(both: Path) -> None:
    assert not verify(both, True).findings


def test_reproduction_asks_none_of_it(frugal: Path, both: Path) -> None:
    """Alone it states nothing; beside a run by latency both sides list that run's statements and no other."""
    with LedgerReader(frugal) as reader, pytest.raises(BadInput, match="none to reproduce"):
        reproduction(reader, 5)
    with LedgerReader(both) as reader:
        found = statements((row.seq, row.stream, row.event) for row in reader.recorded())
        last = max(row.seq for row in reader.recorded() if row.stream.startswith("run1"))
    assert found.stated and all(statement.seq <= last for statement in found.stated)
    assert set(First(both).statements) == {statement.seq for statement in found.stated}


def test_ablate_refuses_it(frugal: Path) -> None:
    result = invoke("ablate", "--ledger", frugal)
    assert result.exit_code == 1
    assert "expected runs whose verdicts are by latency, found an objective in run1" in result.output


def test_transfer_leaves_it_out(frugal: Path, both: Path) -> None:
    policy = Played(evolves=True)
    assert transfer([str(frugal)], "problem", policy, None) == ()
    assert {held.cell.split("/")[0] for held in transfer([str(both)], "problem", policy, None)} == {"run1"}


def test_an_examination_refuses_an_objective(tmp_path: Path) -> None:
    asked = ExaminationRequest(purpose="x", subjects=(), rules=(), statistics=replace(STATISTICS, objective=ENERGY))
    with LedgerWriter(tmp_path / "exam.db") as ledger, pytest.raises(BadInput, match="an examination compares times"):
        Examination(ledger, FakeExecutor(), asked, ignore).play()


def test_the_report_says_what_it_was_decided_by(frugal: Path, both: Path) -> None:
    said = invoke("report", frugal).output
    assert "verdicts by energy: FASTER, and a ratio above 1, says that the candidate draws less energy a call" in said
    assert (
        "above 1 the right one draws less energy a call" in said
        and "above 1 the winner draws less energy a call" in said
    )
    assert "is faster" not in said and "best kernel of" not in said and "Predicted gain" not in said
    beside = invoke("report", both).output
    assert "above 1 the right one is faster" in beside and "best kernel of" in beside


def test_an_export_says_what_it_was_decided_by(frugal: Path, tmp_path: Path) -> None:
    out = tmp_path / "winner.py"
    assert invoke("export", frugal, "kb_matmul_scalar", "--output", out).exit_code == 0
    text = out.read_text()
    assert "blocks, by energy)" in text and "# less energy " in text and "speed-up" not in text


def test_thermal_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "thermal.db"
    play(path, MeteredExecutor(), replace(request("on", rounds=2), objective=THERMAL))
    assert "verdicts by thermal" in (said := invoke("report", path).output) and "the right one heats less" in said


# --- parts ---


def test_parts_are_joined_with_their_energies() -> None:
    """Energies of some parts alone are none."""
    one, other = {"blocks": [1], "energy": ["a"]}, {"blocks": [2], "energy": ["b"]}
    assert joined(one, other)["energy"] == ["a", "b"]
    assert "energy" not in joined(one, {"blocks": [2]}) and "energy" not in joined({"blocks": [1]}, other)
