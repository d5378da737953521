"""The committed examinations of an H200: they verify, and every figure that the README states of the measurement is in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusolver.events.model import KernelExamined, Profiled, RuleRetired
from gpusolver.events.reader import LedgerReader
from gpusolver.projections.examination import ExaminationView, fold, matrix
from gpusolver.replay.verify import verify

FOLDER = Path(__file__).parents[2] / "problems" / "recordings" / "h200.measurement.v1"
LEDGERS = ("problems", "planted-calibration", "planted-held-out", "timing", "rules")
HEADROOM = 8_000_000
"""Bytes that a committed ledger may have."""


@cache
def exams(name: str) -> dict[str, ExaminationView]:
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return fold((row.stream, row.event) for row in ledger.recorded())


def stated(name: str) -> dict[str, float]:
    """The figures of all examinations of a ledger."""
    return {key: value for view in exams(name).values() for key, value in (view.stated or {}).items()}


@cache
def artifacts(name: str) -> dict[str, Any]:
    """Counters by subject."""
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        events = [row.event for row in ledger.recorded()]
        examined = [e for e in events if isinstance(e, KernelExamined) and e.counters]
        return {e.subject: msgspec.json.decode(ledger.artifact(e.counters or "")) for e in examined}


@pytest.mark.parametrize("name", LEDGERS)
def test_each_ledger_verifies_and_is_small(name: str) -> None:
    path = FOLDER / f"{name}.db"
    assert not verify(path, True).findings
    assert path.stat().st_size < HEADROOM


def test_identical_arms_are_the_same_in_600_comparisons() -> None:
    """At least 99 % SAME, and none FASTER or SLOWER, over kernels from 5 us to 2 ms."""
    figures, pairs = stated("timing"), [p.name for view in exams("timing").values() if view.registration
                                        for p in view.registration.pairs if p.truth == "SAME"]  # fmt: skip
    count = {v: sum(figures[f"pair/{pair}/{v}"] for pair in pairs) for v in ("SAME", "FASTER", "SLOWER", "AMBIGUOUS")}
    assert len(pairs) == 5 and sum(count.values()) == 600
    assert count["FASTER"] == count["SLOWER"] == 0 and count["SAME"] >= 594


def test_a_two_percent_slowdown_is_called_slower() -> None:
    """At least 95 % of 120 comparisons each, on two kernels of more than 100 us."""
    for view in exams("timing").values():
        assert view.registration is not None and view.stated is not None
        for pair in view.registration.pairs:
            if pair.truth == "SLOWER":
                assert view.stated[f"pair/{pair.name}/SLOWER"] >= 0.95 * pair.times == 114
                assert view.examined[pair.subject].signals["time_us"] > 100


@pytest.mark.parametrize(("name", "half"), [("planted-calibration", "calibration"), ("planted-held-out", "held-out")])
def test_planted_kernels_are_told_from_their_near_misses(name: str, half: str) -> None:
    """51 rules, a hit and a near miss each: at least 95 % right, and no rule fires on a missing signal."""
    figures = stated(name)
    assert figures[f"matrix/{half}/expected"] == 102
    assert figures[f"matrix/{half}/right"] >= 0.95 * 102
    assert figures[f"matrix/{half}/fired_on_missing"] == 0
    (view,) = exams(name).values()
    assert len(matrix(view)) == 51


def test_both_halves_were_asked_the_same_frozen_table() -> None:
    (one,), (other,) = exams("planted-calibration").values(), exams("planted-held-out").values()
    assert one.rules == other.rules and len(one.rules) == 54


def test_counters_of_every_rule_cost_under_half_a_second() -> None:
    """Twelve passes for all 54 rules, two for the seed table's base set."""
    for name, passes in (("planted-held-out", 12), ("problems", 12), ("timing", 2)):
        assert {found["passes"] for found in artifacts(name).values()} == {passes}
    costs = sorted(found["wall_s"] for found in artifacts("planted-held-out").values())
    assert costs[len(costs) // 2] < 0.15 and costs[int(0.98 * len(costs))] < 0.5


def test_a_retirement_makes_the_next_profile_cheaper() -> None:
    """Five passes while a rule over stalls is live, two once it is retired."""
    with LedgerReader(FOLDER / "rules.db") as ledger:
        rows = [row for row in ledger.recorded() if row.stream == "run1/sigmoid/tf32-allowed/flags/on/1"]
        retired = next(row.seq for row in rows if isinstance(row.event, RuleRetired))
        passes = {
            row.seq: msgspec.json.decode(ledger.artifact(row.event.counters))["passes"]
            for row in rows
            if isinstance(row.event, Profiled) and row.event.counters
        }
    assert {count for seq, count in passes.items() if seq < retired} == {5}
    assert {count for seq, count in passes.items() if seq > retired} == {2}
