"""Examinations that are in order: clean, printed with what they say, resumable, compared, beside runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.projections.examination import figures, fold
from gpusolver.replay.cli import replay_command
from gpusolver.replay.diff import diff
from gpusolver.replay.verify import verify

from .exam_forge import FIGURES, ExamForge, forge_examination
from .exam_world import SIGNALS
from .forge import Forge
from .reports import found
from .tamper import Line, first, lines, rewrite
from .world import World


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of two examinations and no run."""
    return forge_examination(tmp_path_factory.mktemp("exams") / "ledger.db", examinations=2)


def test_values_worked_out_by_hand_are_found_clean(two: Path) -> None:
    """Every signal, answer, verdict, row and figure of exam_world.py is what the verifier derives."""
    report = verify(two, deep=True)
    assert report.findings == ()
    assert report.counts == {"events": 50, "artifacts": 41, "runs": 0, "cells": 0, "rounds": 0, "examinations": 2}
    assert verify(two, deep=False).findings == ()
    assert len(SIGNALS) == 20 + 65


def test_what_an_examination_says_is_printed(two: Path) -> None:
    """Subjects, pairs with their verdicts, the matrix of each half, counters; and what could not be checked."""
    done = CliRunner().invoke(replay_command, [str(two), "--verify"])
    assert done.exit_code == 0, done.output
    said = [" ".join(line.split()) for line in done.output.splitlines()]
    for line in (
        "exam1: made up, 3 subjects, 3 pairs, plan completed",
        "slow passed full 2.0 us fires uncoalesced, no_clause",
        "broken wrong_result",
        "better truth FASTER FASTER 2 SLOWER 0 SAME 0 AMBIGUOUS 0 2 of 2 as registered",
        "answers of the half held-out: 2 of 4 as expected",
        "must fire 2: 1 fire, 1 do not",
        "quick: saturated does not fire",
        "quick: no_clause fires",
        "counters: 4 of 7 within their bounds of what Nsight Compute reads",
        "findings: none",
    ):
        assert line in said
    assert any("which half a threshold was set on, are statements" in line for line in said)
    whole = json.loads(CliRunner().invoke(replay_command, [str(two), "--verify", "--json"]).output)
    assert whole["examinations"][1]["figures"]["counters/within"] == 4.0


def test_an_unfinished_examination_is_told_not_accused(tmp_path: Path) -> None:
    """Cut off after its second subject: what is there is checked, what is due is said."""
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        forge = ExamForge(ledger)
        forge.begin()
        forge.subject("slow", 0)
        forge.subject("quick", 1)
    report = verify(tmp_path / "ledger.db", deep=True)
    assert report.findings == ()
    assert any("4 still to come, first subject broken" in note for note in report.notes)


def test_examinations_count_their_own_numbers(two: Path, tmp_path: Path) -> None:
    """exam3 without an exam2 is a finding, as run numbers are."""
    path = Path(shutil.copy(two, tmp_path / "ledger.db"))

    def rename(events: list[Line]) -> None:
        for event in events:
            if event.stream == "exam2":
                event.stream = event.body["run"] = "exam3"

    rewrite(path, rename)
    assert "registration" in {kind for _, kind in found(path)}


def test_samples_are_new_to_the_whole_ledger(two: Path, tmp_path: Path) -> None:
    """Not even another examination may name the same blocks, nor the same warm ones."""
    path = Path(shutil.copy(two, tmp_path / "ledger.db"))

    def reuse(events: list[Line]) -> None:
        of_one = first(events, "KernelExamined", run="exam1").body
        of_two = first(events, "KernelExamined", run="exam2").body
        of_two["samples"] = of_one["samples"]
        of_two["extras"]["warm"] = of_one["extras"]["warm"]

    rewrite(path, reuse)
    seen = [f for f in verify(path, deep=True).findings if f.kind == "samples"]
    assert len(seen) == 2 and len({f.seq for f in seen}) == 1


def test_examinations_stand_beside_runs(tmp_path: Path) -> None:
    """A run and an examination in one ledger; samples taken from the run's are a finding."""
    path = tmp_path / "ledger.db"
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        Forge(ledger, World(), arms=("on",), repetitions=1, max_rounds=3).all()
        ExamForge(ledger).all()
    report = verify(path, deep=True)
    assert report.findings == () and (report.counts["runs"], report.counts["examinations"]) == (1, 1)

    def reuse(events: list[Line]) -> None:
        first(events, "PairCompared").body["samples"] = first(events, "Profiled").body["samples"]

    rewrite(path, reuse)
    seq = first(lines(path), "PairCompared").seq
    assert (seq, "samples") in found(path)


def test_the_writing_side_states_the_same_figures(two: Path) -> None:
    """Its own fold of the ledger gives the figures worked out by hand."""
    with LedgerReader(two) as reader:
        views = fold((item.stream, item.event) for item in reader.recorded())

        def sampled_ns(digest: str) -> int:
            return sum(sum(block) for block in json.loads(reader.artifact(digest))["blocks"])

        for view in views.values():
            assert figures(view, sampled_ns) == view.stated == FIGURES


def test_a_difference_of_figures_is_named(two: Path, tmp_path: Path) -> None:
    """By the name of the figure, with both values."""
    path = Path(shutil.copy(two, tmp_path / "ledger.db"))
    rewrite(path, lambda events: first(events, "ExaminationStated").body["figures"].update({"counters/within": 7.0}))
    (only,) = diff(str(two), str(path)).differences
    assert (only.what, only.left, only.right) == ("exam1 figure counters/within", "value 4.0", "value 7.0")
