"""An imported problem in a ledger: its files are there, a run is restored from them, and what does not fit them is found. No torch."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpusolver.engine import run as run_module
from gpusolver.engine.examination import Examination
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.reproduce import reproduction
from gpusolver.engine.run import Run
from gpusolver.engine.withholding import withhold
from gpusolver.events.errors import BadInput, UnreadableLedger
from gpusolver.events.model import Limits, ProblemDeclared, RunRegistered
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem, load
from gpusolver.problems.imported import materialised, restored
from gpusolver.replay.verify import verify

from ..engine.support import FakeExecutor, ignore
from ..engine.test_reproduce import later

NAME = "theirs"


@pytest.fixture
def problem() -> Problem:
    """A hand-made problem's files, as if a user had given them."""
    folder = Path(load("kb_matmul_scalar").reference).parent
    files = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".py", ".toml")
    }
    files["problem.toml"] = files["problem.toml"].replace(b'name = "kb_matmul_scalar"', b'name = "theirs"')
    return materialised(NAME, files)


def play(path: Path, problem: Problem) -> None:
    asked = RunRequest(problems=(NAME,), imported={NAME: problem}, rounds=5)
    with LedgerWriter(path) as ledger:
        Run(ledger, FakeExecutor(), ignore).start(asked)


def forge(path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger whose writer believed its problem whatever its files are."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "restored", lambda declared, artifact: problem)
        play(path, problem)


def declared(path: Path) -> ProblemDeclared:
    with LedgerReader(path) as reader:
        events = [stored.event for stored in reader.recorded("run1")]
    return next(event for event in events if isinstance(event, RunRegistered)).problems[0]


def test_the_ledger_holds_the_problem_and_verifies(tmp_path: Path, problem: Problem) -> None:
    play(tmp_path / "l.db", problem)
    report = verify(tmp_path / "l.db", deep=True)
    assert report.findings == ()
    assert not any("named by no event" in note for note in report.notes)
    with LedgerReader(tmp_path / "l.db") as reader:
        again = restored(declared(tmp_path / "l.db"), reader.artifact)
    assert (again.digest, again.start, again.variants) == (problem.digest, problem.start, problem.variants)
    assert again.files == problem.files


def test_a_killed_run_goes_on_from_the_ledger_alone(tmp_path: Path, problem: Problem) -> None:
    def die(stage: str) -> None:
        if stage == "compare":
            raise KeyboardInterrupt

    path = tmp_path / "l.db"
    asked = RunRequest(problems=(NAME,), imported={NAME: problem}, rounds=5)
    with LedgerWriter(path) as ledger, pytest.raises(KeyboardInterrupt):
        Run(ledger, FakeExecutor(before=die), ignore).start(asked)
    with LedgerWriter(path) as ledger:
        view = Run(ledger, FakeExecutor(), ignore).resume()
    assert view.stopped == "plan completed"
    assert verify(path, deep=True).findings == ()


def test_another_digest_than_the_files_give_is_found(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge(tmp_path / "l.db", msgspec.structs.replace(problem, digest="0" * 64), monkeypatch)
    found = verify(tmp_path / "l.db", deep=False).findings
    assert any(f.kind == "registration" and problem.digest in f.expected for f in found)
    with LedgerReader(tmp_path / "l.db") as reader, pytest.raises(BadInput, match="expected files of digest 0000"):
        restored(declared(tmp_path / "l.db"), reader.artifact)


def test_another_start_than_the_problem_s_is_found(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge(tmp_path / "l.db", msgspec.structs.replace(problem, start=problem.start + "\n# mine\n"), monkeypatch)
    found = verify(tmp_path / "l.db", deep=True).findings
    assert {f.kind for f in found} == {"incumbent"}
    assert len(found) == 2  # one for each arm


@pytest.mark.parametrize("path", ["../start.py", ".hidden.py", "a//b.py"])
def test_paths_that_leave_the_folder_are_refused_or_found(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    files = {**problem.files, path: b"x"}
    forge(tmp_path / "l.db", msgspec.structs.replace(problem, files=files), monkeypatch)
    assert any("plain relative paths" in f.expected for f in verify(tmp_path / "l.db", deep=False).findings)
    if ".." in path:
        with pytest.raises(BadInput, match="within its folder"):
            materialised(NAME, files)


WIDE = Limits(rel_l2=0.9, max_rms=90.0)


@pytest.mark.parametrize(
    ("field", "forged"),
    [
        ("limits", dict.fromkeys(("fp32-strict", "tf32-allowed", "bf16-allowed"), WIDE)),
        ("kind_limits", {"large": {"tf32-allowed": WIDE}}),
        ("mixed_limits", {"tf32-allowed": WIDE}),
        ("min_bytes", 1),
        ("flops", 1),
    ],
)
def test_limits_and_counts_that_the_problem_s_own_file_does_not_state_are_found(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch, field: str, forged: object
) -> None:
    """Wide limits pass a wrong kernel, and small counts one that is faster than the card."""
    forge(tmp_path / "l.db", msgspec.structs.replace(problem, **{field: forged}), monkeypatch)
    found = verify(tmp_path / "l.db", deep=False).findings
    assert any(f.kind == "registration" and f.expected.startswith(f"{field} of {NAME} ") for f in found)


def test_an_imported_problem_is_reproduced_from_the_ledger_alone(tmp_path: Path, problem: Problem) -> None:
    """No file of the user's, and nothing installed, has this name; the new ledger holds the problem too."""
    play(tmp_path / "l.db", problem)
    with LedgerReader(tmp_path / "l.db") as first, LedgerWriter(tmp_path / "again.db") as ledger:
        asked = reproduction(first, 5)
        view = Examination(ledger, FakeExecutor(later), asked, ignore).play()
    assert {answer.answer for answer in view.reproduced} == {"confirmed"} and len(view.reproduced) > 3
    report = verify(tmp_path / "again.db", deep=True, origin=tmp_path / "l.db")
    assert report.findings == () and not any("named by no event" in note for note in report.notes)


def test_without_its_texts_it_is_not_reproduced(tmp_path: Path, problem: Problem) -> None:
    play(tmp_path / "l.db", materialised(NAME, {**problem.files, "original.py": problem.files["start.py"]}))
    withhold(tmp_path / "l.db", tmp_path / "public.db")
    with LedgerReader(tmp_path / "public.db") as first, pytest.raises(UnreadableLedger, match="no artifact"):
        reproduction(first, 5)
