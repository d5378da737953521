"""Recorded measurements under another policy: known courses of a made-up device, and answers that are never invented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Policy
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay.cli import replay_command
from gpusolver.replay.cli_counterfactual import counterfactual
from gpusolver.replay.courses import CellPlayed
from gpusolver.replay.policy import policy

from .forge import Forge, forge
from .tamper import Line, first, rewrite
from .world import World

CELL = "run1/toy/tf32-allowed/full/{}/{}"
EAGER = "evolves = true\ncredible_num = 7\ncredible_den = 8\n"
RECORDING = Path(__file__).parents[2] / "problems" / "recordings" / "h200.v1" / "ledger.db"


def played(path: Path, name: str) -> dict[str, CellPlayed]:
    return {cell.cell: cell for run in counterfactual(str(path), name, 0).runs for cell in run.cells}


def rules(cell: CellPlayed) -> list[str]:
    return [step.rule for step in cell.played.steps]


def replay(*args: object) -> Result:
    return CliRunner().invoke(replay_command, [str(a) for a in args], catch_exceptions=False)


def test_the_policy_of_the_record_gives_the_record(clean: Path) -> None:
    """The engine's own decisions wrote it: its policy, played by this room's code, asks for the same rounds in the same order."""
    for arm, name in (("off", "off"), ("on", "on"), ("off+tabu", "tabu")):
        cell = played(clean, name)[CELL.format(arm, 1)]
        assert (cell.parted, cell.saved, cell.unused, cell.unanswered) == (None, 0, (), None)
        assert cell.played == cell.recorded


def test_a_static_cell_under_the_evolving_policy(clean: Path) -> None:
    """Four inert firings retire the rule; then the evolving arm's own measurements answer, and the course is that arm's."""
    cells = played(clean, "on")
    cell = cells[CELL.format("off", 1)]
    assert cell.parted == 5 and cell.unused == (5, 6, 7, 8)
    assert rules(cell) == ["tf32", "tf32", "tf32", "tf32", "tiles", "tf32", "tiles", "tiles"]
    assert rules(cell) == [step.rule for step in cells[CELL.format("on", 1)].recorded.steps]
    assert {step.of for step in cell.played.steps[4:]} == {CELL.format("on", 1)}
    assert cell.recorded.time_us is not None and cell.played.time_us is not None
    assert cell.recorded.time_us == pytest.approx(300, rel=1e-3)  # the scalar kernel
    assert cell.played.time_us == pytest.approx(45, rel=1e-3)  # tiles of 64 with TF32
    assert (cell.recorded.reached, cell.played.reached) == (0, 6)


def test_what_was_not_measured_is_said_and_ends_the_play(tmp_path: Path) -> None:
    """The evolving arm alone holds four inert firings; the static table would ask for a fifth."""
    path = forge(tmp_path / "ledger.db", arms=("on",), repetitions=1)
    cell = played(path, "off")[CELL.format("on", 1)]
    assert cell.parted == 5 and cell.saved is None and cell.played.end is None
    assert rules(cell) == ["tf32"] * 4
    assert cell.unanswered is not None
    assert (cell.unanswered.round, cell.unanswered.rule) == (5, "tf32")
    shown = replay(path, "--policy", "off")
    assert shown.exit_code == 0
    assert "no measurement from round 5 on: tf32 would ask for tf32" in shown.output
    assert "parts at round 5: tiles in the record, tf32 here" in shown.output
    assert "; not known of 1" in shown.output


def test_a_measurement_answers_once(tmp_path: Path) -> None:
    """With memory the second round asks for tiles on the start, which the evolving arm measured once: and only one cell may have it."""
    path = forge(tmp_path / "ledger.db", arms=("off", "on"), repetitions=1)
    cell = played(path, "tabu")[CELL.format("off", 1)]
    used = [(step.of, step.of_round) for step in cell.played.steps]
    assert len(set(used)) == len(used)
    assert used[:4] == [(CELL.format("off", 1), 1), *((CELL.format("on", 1), number) for number in (5, 6, 7))]


def test_the_same_repetition_answers_first(tmp_path: Path) -> None:
    path = forge(tmp_path / "ledger.db", arms=("off", "on"), repetitions=2)
    for number in (1, 2):
        cell = played(path, "on")[CELL.format("off", number)]
        assert {step.of for step in cell.played.steps[4:]} == {CELL.format("on", number)}


def test_a_file_of_parameters(clean: Path, tmp_path: Path) -> None:
    """At a bound of 7/8 two failures retire (P(rate < 1/2) = 1 - 1/2^3 after two): two rounds fewer before the tiles, and then
    two slower ones silence them on the dot kernel."""
    file = tmp_path / "eager.toml"
    file.write_text(EAGER)
    cell = played(clean, str(file))[CELL.format("on", 1)]
    assert rules(cell) == ["tf32", "tf32", "tiles", "tf32", "tiles", "tiles"]
    assert (cell.parted, cell.saved, cell.unused, cell.played.end) == (3, 2, (3, 4), "no rule fires")
    file.write_text("evolves = false\nmax_rounds = 3\n")
    short = played(clean, str(file))[CELL.format("off", 1)]
    assert (short.parted, short.saved, short.unused) == (4, 5, (4, 5, 6, 7, 8))
    assert short.played.end == "rounds exhausted"


def test_a_patience_passes_over_what_does_nothing(clean: Path, tmp_path: Path) -> None:
    """With a patience of 2 the inert flag has two rounds on the start, then the tiles are asked: two rounds fewer than by retiring."""
    file = tmp_path / "short.toml"
    file.write_text("evolves = true\npatience = 2\n")
    cell = played(clean, str(file))[CELL.format("on", 1)]
    assert rules(cell)[:4] == ["tf32", "tf32", "tiles", "tf32"] and cell.parted == 3
    assert cell.played.time_us == pytest.approx(45, rel=1e-3)  # the same kernel in the end


def eager(path: Path) -> Path:
    """The same device and arms, registered and played by the engine with a bound of 7/8."""
    with LedgerWriter(path) as ledger:
        run = Forge(ledger, World(), repetitions=1)
        run.registered = replace(run.registered, policy=Policy(credible_num=7, credible_den=8))
        run.all()
    return path


def test_the_play_is_what_the_engine_does_under_that_policy(clean: Path, tmp_path: Path) -> None:
    """Two codes, one policy: the rounds that this room plays from the cautious record are those that the engine wrote as eager."""
    file = tmp_path / "eager.toml"
    file.write_text(EAGER)
    there = played(eager(tmp_path / "eager.db"), "on")[CELL.format("on", 1)].recorded
    here = played(clean, str(file))[CELL.format("on", 1)]
    courses = [[(s.rule, s.verdict, s.incumbent) for s in course.steps] for course in (here.played, there)]
    assert courses[0] == courses[1] and len(courses[0]) == 6
    assert here.played.end == there.end


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "evolves"),
        ("evolves = 1", "evolves"),
        ("evolves = true\nretire_after = 4", "retire_after"),
        ("evolves = true\ncredible_num = 3", "belong together"),
        ("evolves = true\ncredible_num = 1\ncredible_den = 2", "1/2 <"),
        ("evolves = true\ncredible_num = 5\ncredible_den = 5", "1/2 <"),
        ("evolves = true\nmax_rounds = 0", "max_rounds"),
        ("evolves = [", "--policy"),
    ],
)
def test_files_that_are_no_policy(clean: Path, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    shown = replay(clean, "--policy", file)
    assert shown.exit_code == 2 and said in shown.output


def test_an_unknown_word_names_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"off, on, tabu, off\+tabu, on\+tabu, or a file"):
        policy("greedy")


def test_a_cell_that_has_only_begun_has_not_parted(clean: Path, tmp_path: Path) -> None:
    """A record that ends in mid-course is played on as far as it answers."""
    path = forge(tmp_path / "ledger.db", arms=("off",), repetitions=1)

    def cut(events: list[Line]) -> list[Line]:
        last = [i for i, event in enumerate(events) if event.kind == "RoundJudged"][2]
        return events[: last + 1]

    rewrite(path, cut)
    cell = played(path, "off")[CELL.format("off", 1)]
    assert (cell.parted, cell.saved) == (None, None) and len(cell.played.steps) == 3
    assert cell.unanswered is not None and cell.unanswered.round == 4


def test_a_start_that_is_unfit_has_one_course(tmp_path: Path) -> None:
    path = forge(tmp_path / "ledger.db", World(start_error=3e-2), repetitions=1)
    cells = played(path, "on").values()
    assert {(cell.parted, cell.saved, cell.recorded.end) for cell in cells} == {(None, 0, "start unfit")}


def test_a_damaged_ledger_is_played_with_a_word_of_warning(ledger: Path) -> None:
    """Findings are counted, exit 1; launches that are gone make a cell unplayable, not the whole."""

    def change(events: list[Line]) -> None:
        first(events, "Profiled", round=0).body["launches"] = "0" * 64

    rewrite(ledger, change)
    shown = replay(ledger, "--policy", "on")
    assert shown.exit_code == 1 and "findings of its own" in shown.output
    assert f"{CELL.format('off', 1)}: cannot be played: MissingArtifact" in shown.output
    assert f"{CELL.format('on', 1)}: as recorded" in shown.output


def test_json_holds_both_courses(clean: Path) -> None:
    found = json.loads(replay(clean, "--policy", "tabu", "--json").output)
    (run,) = found["runs"]
    by_cell = {cell["cell"]: cell for cell in run["cells"]}
    assert by_cell[CELL.format("off", 1)]["parted"] == 2
    assert found["policy"] == "tabu" and found["findings"] == 0


def test_what_an_h200_measured_under_the_other_policy() -> None:
    """The recorded static arm, played as evolving, comes to the kernel that the evolving arm found, ten rounds as there."""
    cells = played(RECORDING, "on")
    for number in (1, 2, 3):
        off, on = (cells[f"run1/kb_matmul_scalar/tf32-allowed/flags/{arm}/{number}"] for arm in ("off", "on"))
        assert off.parted == 5 and off.saved == 2
        assert off.played.incumbent == on.recorded.incumbent
        assert rules(off) == [step.rule for step in on.recorded.steps]
    for cell in cells.values():
        if "/on/" in cell.cell:
            assert cell.parted is None and cell.played == cell.recorded
