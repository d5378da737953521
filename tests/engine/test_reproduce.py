"""`gpusolver reproduce` on made-up kernels: what is asked again, what is said of it, how it goes on, what it refuses."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine import cli_reproduce
from gpusolver.engine.examination import Examination
from gpusolver.engine.reproduce import reproduction
from gpusolver.engine.seal import seal
from gpusolver.events.errors import BadInput
from gpusolver.events.model import ExaminationRegistered, KernelExamined, PairCompared, StatementReproduced
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.projections.examination import ExaminationView
from gpusolver.replay.verify import verify

from ..replay.tamper import Line, first, rewrite
from .support import FakeExecutor, Kernel, assert_verifies, ignore, matmul_story, only, play, request, stored

# Of the made-up story, by kind: the two rounds that were FASTER, eight comparisons (none identical), and two claims.
STATED = {"round": 2, "comparison": 9, "claim": 2}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, off and on; not to be altered."""
    path = tmp_path_factory.mktemp("first") / "first.db"
    play(path, FakeExecutor(), request("off", "on"))
    return path


def later(text: str) -> Kernel:
    """The story's kernels on another card: a few ns slower, so that no sample is one of the first ledger's."""
    kernel = matmul_story(text)
    return replace(kernel, ns=kernel.ns + 11)


def reproduce(origin: Path, path: Path, executor: FakeExecutor | None = None, **asked: object) -> ExaminationView:
    with LedgerReader(origin) as reader:
        wanted = reproduction(reader, 5, **asked)  # type: ignore[arg-type]
    with LedgerWriter(path) as ledger:
        return Examination(ledger, executor or FakeExecutor(later), wanted, ignore).play()


def answers(view: ExaminationView) -> dict[str, set[str]]:
    """The answers given, by kind of statement."""
    assert view.registration is not None
    kinds = {statement.seq: statement.kind for statement in view.registration.statements or ()}
    found: dict[str, set[str]] = {}
    for event in view.reproduced:
        found.setdefault(kinds[event.statement], set()).add(event.answer)
    return found


def test_the_same_kernels_on_the_same_chip_confirm_every_statement(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    view = reproduce(recorded, path)
    assert view.registration is not None and view.registration.origin and view.registration.statements
    with LedgerReader(recorded) as reader:
        assert (view.registration.origin.events, view.registration.origin.head) == reader.head()
    kinds = [statement.kind for statement in view.registration.statements]
    assert {kind: kinds.count(kind) for kind in kinds} == STATED
    assert answers(view) == {kind: {"confirmed"} for kind in STATED}
    assert view.stated is not None
    assert [view.stated[f"statements/{answer}"] for answer in ("confirmed", "not confirmed", "other chip")] == [
        13,
        0,
        0,
    ]
    assert not verify(path, True, origin=recorded).findings


def test_a_gain_that_is_not_there_is_not_confirmed(recorded: Path, tmp_path: Path) -> None:
    """All kernels take as long as one another here: what was FASTER or SLOWER is not, and the claims that fell short hold one way."""
    path = tmp_path / "again.db"

    def flat(text: str) -> Kernel:
        return replace(matmul_story(text), ns=100_000)

    view = reproduce(recorded, path, FakeExecutor(flat))
    found = answers(view)
    assert found["round"] == found["comparison"] == {"not confirmed"}
    # Both were not upheld: 3.66 < 5.75 and 0.55 < 1.0. At 1.00 the first is not upheld still, the second is.
    assert [event.answer for event in view.reproduced[-2:]] == ["confirmed", "not confirmed"]
    assert_verifies(path)


def test_another_chip_is_said_with_the_ratio_measured_there(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    view = reproduce(recorded, path, FakeExecutor(later, device="NVIDIA B200"))
    assert answers(view) == {kind: {"other chip"} for kind in STATED}
    assert all(len(event.medians) == 3 for event in view.reproduced)
    assert view.calibration is not None and view.calibration.chip.name != "H200"
    assert_verifies(path)


def test_a_kernel_that_its_gate_refuses_here_confirms_nothing(recorded: Path, tmp_path: Path) -> None:
    """The winner is wrong on this machine: none of its pairs is compared, and the examination is whole all the same."""
    path = tmp_path / "again.db"

    def broken(text: str) -> Kernel:
        kernel = later(text)
        return replace(kernel, errors=(0.5, 2.0)) if "tl.dot(" in text and "tf32" in text.lower() else kernel

    view = reproduce(recorded, path, FakeExecutor(broken))
    refused = [examined for examined in view.examined.values() if examined.samples is None]
    assert refused and {examined.outcome for examined in refused} == {"wrong_result"}
    assert all(found.unmeasured == () for found in view.reproduced if found.answer == "confirmed")
    assert all(found.unmeasured for found in view.reproduced if found.answer == "not confirmed")
    assert "not confirmed" in answers(view)["round"]
    assert_verifies(path)


@pytest.mark.parametrize("turn", (1, 2, 9, 16, 20, 33))
def test_a_killed_reproduction_goes_on(recorded: Path, tmp_path: Path, turn: int) -> None:
    """SIGKILL at a measurement: the same command measures what is missing, and nothing twice."""
    path = tmp_path / "again.db"
    child = os.fork()
    if child == 0:
        seen = iter(range(1, 1000))

        def kill(stage: str) -> None:
            if next(seen) == turn:
                os.kill(os.getpid(), signal.SIGKILL)

        reproduce(recorded, path, FakeExecutor(later, before=kill))
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    before = stored(path)

    def after_that(text: str) -> Kernel:
        return replace(later(text), ns=later(text).ns + 7)

    reproduce(recorded, path, FakeExecutor(after_that))
    after = stored(path)
    assert after[: len(before)] == before
    events = [row.event for row in after]
    assert (len(only(events, KernelExamined)), len(only(events, PairCompared))) == (7, 21)
    assert len(only(events, ExaminationRegistered)) == 1 and len(only(events, StatementReproduced)) == 13
    assert not verify(path, True, origin=recorded).findings


def test_a_ledger_that_states_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    with LedgerWriter(path):
        pass
    with pytest.raises(BadInput, match="found none to reproduce"):
        reproduce(path, tmp_path / "again.db")


def test_a_problem_that_is_not_the_registered_one_is_refused(recorded: Path, tmp_path: Path) -> None:
    """Another reference or another size would gate and time something else."""
    path = Path(shutil.copy(recorded, tmp_path / "other.db"))

    def change(events: list[Line]) -> None:
        first(events, "RunRegistered").body["problems"][0]["digest"] = "ab" * 32

    with pytest.raises(BadInput, match=r"digest abab.*version of gpusolver that wrote it"):
        reproduce(rewrite(path, change), tmp_path / "again.db")


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeExecutor:
    executor = FakeExecutor(later)
    monkeypatch.setattr(cli_reproduce, "open_executor", lambda *_: executor)
    monkeypatch.setattr(cli_reproduce, "measures", lambda *_: True)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    return executor


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", *map(str, words)])


def test_the_command_prints_each_statement_and_how_to_check_both(recorded: Path, machine: FakeExecutor) -> None:
    said = invoke(recorded, "--times", 1)
    assert said.exit_code == 0, said.output
    assert "confirmed: 13; not confirmed: 0; other chip: 0" in said.output
    assert f"gpusolver replay reproduction.db --verify --origin {recorded}" in said.output
    assert machine.closed


def test_the_seed_is_random_but_that_of_an_unfinished_reproduction_is_kept(
    recorded: Path, tmp_path: Path, machine: FakeExecutor
) -> None:
    machine._faults[("compare", 9)] = "worker_lost"
    cut = invoke(recorded, "--times", 1)
    assert cut.exit_code == 2 and "Run the same command again" in cut.output
    assert invoke(recorded, "--times", 1).exit_code == 0
    assert invoke(recorded, "--times", 1, "--ledger", "b.db").exit_code == 0
    seeds = {
        event.seed
        for path in ("reproduction.db", "b.db")
        for event in only((row.event for row in stored(tmp_path / path)), ExaminationRegistered)
    }
    assert len(seeds) == 2


def test_an_unfinished_reproduction_goes_on_though_the_first_ledger_has_grown(
    recorded: Path, tmp_path: Path, machine: FakeExecutor
) -> None:
    """A seal or a further run does not change what was registered: the reproduction is of the ledger as it was."""
    first = Path(shutil.copy(recorded, tmp_path / "first.db"))
    machine._faults[("compare", 9)] = "worker_lost"
    assert invoke(first, "--times", 1).exit_code == 2
    seal(first, None, "example.com/made-up", tmp_path / "checkpoint")
    assert invoke(first, "--times", 1).exit_code == 0
    registered = only((row.event for row in stored(tmp_path / "reproduction.db")), ExaminationRegistered)
    with LedgerReader(first) as reader:
        assert [event.origin.events for event in registered if event.origin] == [reader.head()[0] - 1]
    assert not verify(tmp_path / "reproduction.db", True, origin=first).findings


def test_exit_codes(recorded: Path, tmp_path: Path, machine: FakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 where something was not confirmed; 2 for what cannot be done, before any file is made."""
    monkeypatch.setattr(
        cli_reproduce, "open_executor", lambda *_: FakeExecutor(lambda text: replace(later(text), ns=90_000))
    )
    assert invoke(recorded, "--times", 1, "--ledger", "slow.db").exit_code == 1
    for words in ((recorded, "--only", "rounds"), (tmp_path / "none.db",), (recorded, "--ledger", recorded)):
        refused = invoke(*words)
        assert refused.exit_code == 2 and "Traceback" not in refused.output, refused.output
    monkeypatch.setattr(cli_reproduce, "measures", lambda *_: False)
    assert "found none" in invoke(recorded).output
    assert not (tmp_path / "reproduction.db").exists()
