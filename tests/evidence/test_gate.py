"""The committed soaks of the gate, on the CPU stand-in and on an H200: they verify, and no cheat of them counted, no honest candidate was thrown out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from statistics import mean, median

import msgspec
import pytest

from gpusolver.events.model import ExaminationRegistered, KernelExamined
from gpusolver.events.reader import LedgerReader
from gpusolver.replay.verify import verify

RECORDINGS = Path(__file__).parents[2] / "problems" / "recordings"


@cache
def examined(name: str) -> tuple[KernelExamined, ...]:
    with LedgerReader(RECORDINGS / f"{name}.db") as ledger:
        return tuple(row.event for row in ledger.recorded() if isinstance(row.event, KernelExamined))


def outcomes(name: str, kind: str) -> Counter[str]:
    return Counter(event.outcome for event in examined(name) if event.subject.startswith(f"{kind}/"))


@pytest.mark.parametrize("name", ["gate.v1/cpu-soak", "gate.v1/h200", "gate.v2/h200"])
def test_each_ledger_verifies(name: str) -> None:
    assert not verify(RECORDINGS / f"{name}.db", True).findings


def test_500_hostile_candidates_in_a_row_on_the_cpu() -> None:
    """Each followed by an honest one, in the order that was registered: none lost, none refused, no cheat passed."""
    with LedgerReader(RECORDINGS / "gate.v1/cpu-soak.db") as ledger:
        (plan,) = [r.event for r in ledger.recorded() if isinstance(r.event, ExaminationRegistered)]
    assert [event.subject for event in examined("gate.v1/cpu-soak")] == [subject.name for subject in plan.subjects]
    cheats, honest, attacks = (outcomes("gate.v1/cpu-soak", kind) for kind in ("cheats", "honest", "survival"))
    assert (cheats.total(), cheats["passed"], attacks.total()) == (273, 0, 227)
    assert honest == {"passed": 500}
    assert all(event.samples for event in examined("gate.v1/cpu-soak") if event.outcome == "passed")


def test_40_cheats_on_the_h200_and_no_more() -> None:
    """Cut by time after 40 of each: the examination has no end, and says so."""
    assert outcomes("gate.v1/h200", "cheats").total() == 40 and "passed" not in outcomes("gate.v1/h200", "cheats")
    assert outcomes("gate.v1/h200", "honest") == {"passed": 40}
    assert not outcomes("gate.v1/h200", "survival")


def test_84_hostile_candidates_of_both_kinds_in_a_row_on_the_h200() -> None:
    """As registered and in turn; cut by time before the hundredth. Whoever passed was an attack on the process, right and timed."""
    with LedgerReader(RECORDINGS / "gate.v2/h200.db") as ledger:
        (plan,) = [r.event for r in ledger.recorded() if isinstance(r.event, ExaminationRegistered)]
    seen = examined("gate.v2/h200")
    assert len(plan.subjects) == 200
    assert [event.subject for event in seen] == [subject.name for subject in plan.subjects[: len(seen)]]
    cheats, honest, attacks = (outcomes("gate.v2/h200", kind) for kind in ("cheats", "honest", "survival"))
    assert (cheats.total(), cheats["passed"], attacks.total()) == (42, 0, 42)
    assert honest == {"passed": 84}
    assert all(event.samples and event.counters for event in seen if event.outcome == "passed")


def test_what_a_gate_adds_to_an_honest_candidate_on_the_h200() -> None:
    """Nanoseconds in the reports: whole, and without the candidate's own loading and first call."""
    with LedgerReader(RECORDINGS / "gate.v2/h200.db") as ledger:
        honest = [event for event in examined("gate.v2/h200") if event.subject.startswith("honest/")]
        reports = [msgspec.json.decode(ledger.artifact(event.report)) for event in honest]
    whole = sorted(report["spent_ns"] / 1e9 for report in reports)
    added = sorted((report["spent_ns"] - report["first_ns"]) / 1e9 for report in reports)
    assert (round(median(whole), 2), round(mean(whole), 2)) == (0.59, 0.74)
    assert (round(median(added), 2), round(mean(added), 2)) == (0.26, 0.29)
    assert round(added[int(0.9 * (len(added) - 1))], 2) == 0.50
