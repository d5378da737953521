"""What a person sees: exit codes, claims side by side, positions, and no way for a ledger to steer the terminal."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpusolver.events.model import Origin
from gpusolver.replay.cli import replay_command
from gpusolver.replay.cli_diff import diff_command

from .forge import forge
from .tamper import first, lines, rewrite
from .world import World


def replay(*args: object) -> Result:
    """Run `replay`."""
    return CliRunner().invoke(replay_command, [str(a) for a in args], catch_exceptions=False)


def diff(*args: object) -> Result:
    """Run `diff`."""
    return CliRunner().invoke(diff_command, [str(a) for a in args], catch_exceptions=False)


def test_a_clean_ledger_is_exit_0_and_shows_the_claim_twice(clean: Path) -> None:
    """Stated and re-derived, one under the other."""
    shown = replay(clean, "--verify")
    assert shown.exit_code == 0
    assert "stated      upheld" in shown.output and "re-derived  upheld" in shown.output
    assert "findings: none" in shown.output and "compare with one kept elsewhere" in shown.output
    assert "no signature" in shown.output and "tail not anchored" in shown.output


def test_without_verify_nothing_is_re_derived_and_that_is_said(clean: Path) -> None:
    """The rule table and the rounds are folded all the same."""
    shown = replay(clean)
    assert shown.exit_code == 0
    assert "re-derived  no: use --verify" in shown.output and "retired in TOY1/" in shown.output


def test_findings_are_exit_1_and_name_the_event(ledger: Path) -> None:
    """Seq and kind stand in the line."""
    rewrite(ledger, lambda events: first(events, "RoundJudged", verdict="FASTER").body.update(verdict="SLOWER"))
    seq = next(e.seq for e in lines(ledger) if e.kind == "RoundJudged" and not e.body["inert"])
    shown = replay(ledger, "--verify")
    assert shown.exit_code == 1
    assert f"event {seq}: verdict: expected FASTER; found SLOWER" in shown.output
    assert replay(ledger).exit_code == 0


def test_provenance_and_merit_are_two_verdicts(clean: Path, tmp_path: Path) -> None:
    """Right and cut short, whole and wrong, anchored and right: each is said by itself."""
    head = json.loads(replay(clean, "--json").output)["head"]
    cut, wrong = (Path(shutil.copy(clean, tmp_path / name)) for name in ("cut.db", "wrong.db"))
    rewrite(cut, lambda events: events[:-1])
    rewrite(wrong, lambda events: first(events, "RoundJudged", verdict="FASTER").body.update(verdict="SLOWER"))

    def verdicts(*words: object) -> tuple[str, str]:
        report = json.loads(replay(*words, "--verify", "--json").output)
        return report["provenance"].partition(" ")[0], report["merit"].partition(":")[0]

    assert verdicts(clean) == ("holds", "holds")
    assert verdicts(cut, "--head", head) == ("does", "holds")
    assert verdicts(wrong) == ("holds", "does not hold")
    assert "nothing kept elsewhere vouches for it" in replay(clean).output
    assert "merit: not derived: use --verify" in replay(clean).output
    assert "provenance: holds, by what was kept elsewhere" in replay(clean, "--head", head).output


@pytest.mark.parametrize("content", [None, b"", b"not a database", b"SQLite format 3\0" + b"\0" * 84])
def test_what_cannot_be_read_is_exit_2(tmp_path: Path, content: bytes | None) -> None:
    """In words, with the path, for both commands."""
    path = tmp_path / "ledger.db"
    if content is not None:
        path.write_bytes(content)
    for shown in (replay(path), replay(path, "--verify", "--json"), diff(path, path)):
        assert shown.exit_code == 2 and str(path) in shown.output


def test_another_database_is_no_ledger(tmp_path: Path) -> None:
    """Another application id is refused."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE events(seq)")
    assert replay(path, "--verify").exit_code == 2


def test_json_holds_the_whole_report(clean: Path) -> None:
    """Counts, head, runs with rules, rounds and claims."""
    report = json.loads(replay(clean, "--verify", "--json").output)
    assert report["findings"] == [] and report["counts"]["cells"] == 3
    assert report["head_seq"] == report["counts"]["events"] == lines(clean)[-1].seq
    (run,) = report["runs"]
    assert run["claims"][0]["agree"] is True and len(run["rounds"]) == report["counts"]["rounds"]


def test_the_head_is_demanded(clean: Path) -> None:
    """In either case of letters; another one is a finding."""
    head = json.loads(replay(clean, "--json").output)["head"]
    assert replay(clean, "--head", head.upper()).exit_code == 0
    assert replay(clean, "--head", "0" * 64).exit_code == 1


def test_a_recorded_run_says_so(tmp_path: Path) -> None:
    """With the origin's head."""
    origin = Origin(head="cd" * 32, events=700)
    path = forge(tmp_path / "recorded.db", origin=origin, arms=("on",), repetitions=1)
    shown = replay(path, "--verify")
    assert f"recorded, not pre-registered; origin head {'cd' * 32}" in shown.output


def test_a_ledger_cannot_steer_the_terminal(ledger: Path) -> None:
    """Escape sequences come out as text."""

    def change(events: list) -> None:  # type: ignore[type-arg]
        registered = first(events, "RunRegistered").body
        registered["executor"] = "\x1b[2J\u202e"
        registered["claims"][0]["text"] = "\x07"

    rewrite(ledger, change)
    shown = replay(ledger, "--verify").output
    assert "\x1b" not in shown and "\x07" not in shown and "\u202e" not in shown
    assert "\\x1b[2J" in shown


def test_diff_of_equal_ledgers(clean: Path, ledger: Path) -> None:
    """The same events say the same."""
    shown = diff(clean, ledger)
    assert shown.exit_code == 0 and "no difference" in shown.output


def test_diff_names_the_first_event_and_what_follows(clean: Path, tmp_path: Path) -> None:
    """Another device: other samples from the first profile on."""
    other = forge(tmp_path / "other.db", World(seed=2), repetitions=1)
    found = json.loads(diff(clean, other, "--json").output)
    calibrated = first(lines(clean), "RoundAttempted").seq
    assert found["first_event"]["seq"] > calibrated
    rounds = {d["what"] for d in found["differences"] if " round " in d["what"]}
    assert "run1/toy/tf32-allowed/full/on/1 round 5" in rounds
    assert "run1/toy/tf32-allowed/full/on/1 round 4" not in rounds  # inert rounds hold no times
    assert diff(clean, other).exit_code == 1


def test_diff_of_two_positions(clean: Path) -> None:
    """What one more round did."""
    judged = [e.seq for e in lines(clean) if e.kind == "RoundJudged"]
    shown = diff(f"{clean}@{judged[1]}", f"{clean}@{judged[2]}")
    assert shown.exit_code == 1
    assert f"event {judged[1] + 1}" in shown.output
    assert "fired 2, successes 0, failures 2, confidence 0.25" in shown.output
    assert "fired 3, successes 0, failures 3, confidence 0.2" in shown.output


@pytest.mark.parametrize("position", ["0", "x", "99999", "-1"])
def test_positions_that_do_not_exist(clean: Path, position: str) -> None:
    """In words, exit 2."""
    shown = diff(f"{clean}@{position}", clean)
    assert shown.exit_code == 2 and "expected a position" in shown.output


def test_a_path_that_is_not_utf_8_can_be_written_as_json(clean: Path, tmp_path: Path) -> None:
    """Its undecodable byte is escaped."""
    path = tmp_path / os.fsdecode(b"\xff.db")
    shutil.copy(clean, path)
    shown = replay(path, "--verify", "--json")
    assert shown.exit_code == 0
    assert json.loads(shown.output)["path"].endswith("\\udcff.db")
    assert "error" in json.loads(replay(tmp_path / os.fsdecode(b"\xfe.db"), "--json").output)


def test_a_claims_bound_is_printed_beside_its_text(clean: Path) -> None:
    """Whatever the text says."""
    assert "claim c1: on beats off (registered: endpoint at least 1.5)" in replay(clean).output
