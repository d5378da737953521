"""Why two ledgers part: the first event, the first decision of each cell, and what fed it; and a ledger beside the engine's folds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.audit import projected
from gpusolver.events.model import Clause, Rule
from gpusolver.replay.cli_diff import diff_command
from gpusolver.replay.diff import diff, diff_projections
from gpusolver.replay.parting import Parting

from .forge import forge
from .tamper import Line, add_artifact, artifact, first, lines, rewrite
from .world import RULES, World

ON, OFF, TABU = (f"run1/toy/tf32-allowed/full/{arm}/1" for arm in ("on", "off", "off+tabu"))


def gpusolver(*args: object) -> Result:
    """The whole command line, which hands the engine's projections to `diff`."""
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def fed(parting: Parting) -> dict[str, tuple[str | None, str | None]]:
    return {entry.what: (entry.left, entry.right) for entry in parting.fed_by}


def test_other_samples_and_the_same_decisions(clean: Path, tmp_path: Path) -> None:
    """Noise alone: the first event is the first profile, its samples are told, no decision parted."""
    other = forge(tmp_path / "other.db", World(seed=2), repetitions=1)
    found = diff(str(clean), str(other))
    assert found.first_event is not None and found.first_event.fields == ("samples", "signals")
    told = {entry.what for entry in found.first_event.fed_by}
    assert {"signal time_us", "samples, lower median of B in ns"} <= told
    assert found.parted is not None and (found.parted.cells, found.parted.partings, found.parted.ground) == (3, (), ())
    assert {d.fields for d in found.differences if " round 6" in d.what} == {("lower", "median", "upper")}


def test_times_recorded_for_people_are_no_difference(clean: Path, ledger: Path) -> None:
    def later(events: list[Line]) -> None:
        for event in events:
            event.at = "2031-01-01T00:00:00.000Z"

    rewrite(ledger, later)
    shown = gpusolver("diff", clean, ledger)
    assert shown.exit_code == 0 and "no difference" in shown.output


def test_a_verdict_that_differs_names_its_samples(clean: Path, tmp_path: Path) -> None:
    """Inert here, measured there: the parting is at the verdict of the first round."""
    rewritten = forge(tmp_path / "other.db", Slower(), repetitions=1)
    found = diff(str(clean), str(rewritten))
    assert found.parted is not None
    partings = {parting.cell: parting for parting in found.parted.partings}
    assert set(partings) == {ON, TABU}
    parting = partings[TABU]
    assert (parting.round, parting.what) == (2, "verdict")
    assert (parting.left, parting.right) == ("FASTER, success", "SLOWER, failure")
    told = fed(parting)
    left, right = told["samples, lower median of B in ns"]
    assert left is not None and right is not None and abs(int(left) - 90_000) < 100 and abs(int(right) - 450_000) < 100
    # Evidence parts at its source: in the evolving arm the same round comes after four inert ones.
    assert (partings[ON].round, partings[ON].what) == (5, "verdict")


class Slower(World):
    """A device on which the dot kernel takes five times as long, whatever its tiles."""

    def unpolished_ns(self, text: str) -> int:
        return super().unpolished_ns(text) * (1 if "scalar" in text else 5)


class Level(World):
    """A device on which all tiles take the same time, so that the first ones are chosen."""

    def unpolished_ns(self, text: str) -> int:
        return 300_000 if "scalar" in text else 100_000


def test_another_choice_of_tiles_names_the_sweep(clean: Path, tmp_path: Path) -> None:
    """The candidate parts before any verdict: 64 are the fastest here (90 us), all are alike there."""
    found = diff(str(clean), str(forge(tmp_path / "other.db", Level(), repetitions=1)))
    assert found.parted is not None
    parting = {parting.cell: parting for parting in found.parted.partings}[TABU]
    assert (parting.round, parting.what) == (2, "candidate")
    times = {what: pair for what, pair in fed(parting).items() if what.startswith("configuration")}
    assert len(times) == 3  # the fourth runs on neither
    left, right = times['configuration {"BLOCK":64}, lower median in ns']
    assert left is not None and right is not None and abs(int(left) - 90_000) < 100 and abs(int(right) - 100_000) < 100


def test_a_threshold_that_differs_is_the_ground(clean: Path, tmp_path: Path) -> None:
    """A rule that asks for more headroom than there is: another rule fires, and the rule table is what differs."""
    stricter = tuple(
        rule if rule.name != "tf32" else replace_clause(rule, Clause(signal="headroom", op=">", threshold=500.0))
        for rule in RULES
    )
    other = forge(tmp_path / "other.db", rules=stricter, repetitions=1)
    found = diff(str(clean), str(other))
    assert found.parted is not None
    (ground,) = found.parted.ground
    assert ground.what == "run1 rule tf32 version 1"
    assert ground.left is not None and "headroom > 2.0" in ground.left
    assert ground.right is not None and "headroom > 500.0" in ground.right
    parting = found.parted.partings[0]
    assert (parting.cell, parting.round, parting.what) == (OFF, 1, "rule that fires")
    assert (parting.left, parting.right) == ("tf32 version 1", "tiles version 1")


def replace_clause(rule: Rule, clause: Clause) -> Rule:
    return replace(rule, clauses=(rule.clauses[0], clause))


def test_a_signal_that_differs_is_named_where_another_rule_fires(clean: Path, ledger: Path) -> None:
    """One counter of the start altered, and the firing with it: the clause's signal stands beside the rules."""

    def change(events: list[Line]) -> None:
        profiled = first(events, "Profiled", round=0)
        profiled.body["signals"] |= {"load_eff": 0.5}
        fired = first(events, "RuleFired", round=1)
        fired.body |= {"rule": "uncoalesced"}

    rewrite(ledger, change)
    found = diff(str(clean), str(ledger))
    assert found.parted is not None
    parting = found.parted.partings[0]
    assert (parting.left, parting.right) == ("tf32 version 1", "uncoalesced version 1")
    assert fed(parting)["signal load_eff"] == (None, "0.5")


def test_a_gate_that_differs_names_the_errors(clean: Path, tmp_path: Path) -> None:
    other = forge(tmp_path / "other.db", World(start_error=3e-2), repetitions=1)
    found = diff(str(clean), str(other))
    assert found.parted is not None
    parting = found.parted.partings[0]
    assert (parting.cell, parting.round, parting.what) == (OFF, 0, "gate")
    assert fed(parting)["largest rel_l2"] == ("3e-07", "0.03")
    shown = gpusolver("diff", clean, other)
    assert shown.exit_code == 1
    assert "decisions: 3 of the 3 cells that both have parted" in shown.output
    assert "fed by largest rel_l2: 3e-07 against 0.03" in shown.output


def test_a_shorter_run_has_not_parted(clean: Path) -> None:
    """Two positions of one ledger: the shorter one has only got less far, wherever it is cut."""
    events = lines(clean)
    for upto in range(12, len(events), 17):
        found = diff(f"{clean}@{upto}", str(clean))
        assert found.parted is not None and found.parted.partings == (), upto
        assert found.first_event is not None and (found.first_event.seq, found.first_event.left) == (upto + 1, None)


def test_an_artifact_of_another_shape_is_no_reason_to_fail(clean: Path, ledger: Path) -> None:
    """Samples that cannot be read feed nothing, and the rest is told."""

    def change(events: list[Line]) -> None:
        first(events, "Profiled", round=0).body["samples"] = digest
        first(events, "RoundJudged", verdict="FASTER").body["verdict"] = "SLOWER"

    digest = add_artifact(ledger, b"[1, 2")
    rewrite(ledger, change)
    found = diff(str(clean), str(ledger))
    assert found.first_event is not None and found.first_event.fields == ("samples",)
    assert found.parted is not None and found.parted.partings[0].what == "verdict"


# --- beside the engine ------------------------------------------------------------------------------------------------


def test_the_engine_and_the_verifier_say_the_same_at_every_position(clean: Path) -> None:
    events = len(lines(clean))
    for upto in (*range(1, events, 23), events):
        found = diff_projections(
            f"{clean}@{upto}", "engine", json.loads(json.dumps(projected(clean, upto), default=list))
        )
        assert found.differences == (), (upto, found.differences[:2])


@pytest.mark.parametrize("recording", ["h200.v1/ledger.db", "h200.measurement.v1/rules.db"])
def test_the_engine_and_the_verifier_say_the_same_of_what_an_h200_gave(recording: str) -> None:
    path = Path(__file__).parents[2] / "problems" / "recordings" / recording
    shown = gpusolver("diff", path, "--against-engine")
    assert shown.exit_code == 0 and "no difference" in shown.output


def test_a_retirement_that_the_policy_does_not_give_is_a_difference(ledger: Path) -> None:
    """The engine's own policy decides again; a forged retirement is in the verifier's reading of the record alone."""

    def change(events: list[Line]) -> None:
        retired = first(events, "RuleRetired")
        retired.body["rule"] = "tiles"

    rewrite(ledger, change)
    shown = gpusolver("diff", ledger, "--against-engine", "--json")
    assert shown.exit_code == 1
    apart = {d["what"]: d["fields"] for d in json.loads(shown.output)["differences"]}
    assert apart == {f"{ON} rule tiles version 1": ["retired"], f"{ON} rule tf32 version 1": ["retired"]}


def test_a_claim_that_does_not_follow_is_a_difference(ledger: Path) -> None:
    rewrite(ledger, lambda events: first(events, "ClaimStated").body.update(answer="not upheld"))
    shown = gpusolver("diff", ledger, "--against-engine")
    assert shown.exit_code == 1 and "run1 claim c1: answer" in shown.output


def test_words_of_a_wrong_call(clean: Path, tmp_path: Path) -> None:
    """Exit 2, and what was expected."""
    for args, said in (
        ((clean,), "expected two ledgers, or one and --against-engine"),
        ((clean, clean, "--against-engine"), "expected one ledger"),
        ((tmp_path / "none.db", "--against-engine"), "none.db"),
        ((f"{clean}@0", "--against-engine"), "expected a position"),
    ):
        shown = gpusolver("diff", *args)
        assert shown.exit_code == 2 and said in shown.output
    alone = CliRunner().invoke(diff_command, [str(clean), "--against-engine"], catch_exceptions=False)
    assert alone.exit_code == 2 and "has no engine" in alone.output


def test_json_holds_why(clean: Path, tmp_path: Path) -> None:
    other = forge(tmp_path / "other.db", Slower(), repetitions=1)
    found = json.loads(gpusolver("diff", clean, other, "--json").output)
    assert {p["what"] for p in found["parted"]["partings"]} == {"verdict"}
    assert found["parted"]["partings"][0]["left_seq"] > 0


def test_another_chips_ceiling_is_ground(clean: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(clean, tmp_path / "other.db"))
    calibration = first(lines(other), "DeviceCalibrated").body["calibration"]
    assert b"copy" in artifact(other, calibration)
    rewrite(other, lambda events: first(events, "DeviceCalibrated").body.update(copy_gbps=1.0))
    found = diff(str(clean), str(other))
    assert found.parted is not None
    assert [(g.what, g.right) for g in found.parted.ground] == [("run1 copy_gbps", "1.0")]
