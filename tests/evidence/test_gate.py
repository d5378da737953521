"""The committed soaks of the gate, on the CPU stand-in and on an H200: they verify, and no cheat of them counted, no honest candidate was thrown out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gpusolver.events.model import ExaminationRegistered, KernelExamined
from gpusolver.events.reader import LedgerReader
from gpusolver.replay.verify import verify

FOLDER = Path(__file__).parents[2] / "problems" / "recordings" / "gate.v1"


@cache
def examined(name: str) -> tuple[KernelExamined, ...]:
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return tuple(row.event for row in ledger.recorded() if isinstance(row.event, KernelExamined))


def outcomes(name: str, kind: str) -> Counter[str]:
    return Counter(event.outcome for event in examined(name) if event.subject.startswith(f"{kind}/"))


@pytest.mark.parametrize("name", ["cpu-soak", "h200"])
def test_each_ledger_verifies(name: str) -> None:
    assert not verify(FOLDER / f"{name}.db", True).findings


def test_500_hostile_candidates_in_a_row_on_the_cpu() -> None:
    """Each followed by an honest one, in the order that was registered: none lost, none refused, no cheat passed."""
    with LedgerReader(FOLDER / "cpu-soak.db") as ledger:
        (plan,) = [r.event for r in ledger.recorded() if isinstance(r.event, ExaminationRegistered)]
    assert [event.subject for event in examined("cpu-soak")] == [subject.name for subject in plan.subjects]
    cheats, honest, attacks = (outcomes("cpu-soak", kind) for kind in ("cheats", "honest", "survival"))
    assert (cheats.total(), cheats["passed"], attacks.total()) == (273, 0, 227)
    assert honest == {"passed": 500}
    assert all(event.samples for event in examined("cpu-soak") if event.outcome == "passed")


def test_40_cheats_on_the_h200_and_no_more() -> None:
    """Cut by time after 40 of each: the examination has no end, and says so."""
    assert outcomes("h200", "cheats").total() == 40 and "passed" not in outcomes("h200", "cheats")
    assert outcomes("h200", "honest") == {"passed": 40}
    assert not outcomes("h200", "survival")
