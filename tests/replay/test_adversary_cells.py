"""One cell of a run played by another rule than was registered, everything else by the book: a draw, a patience, an order. Nothing was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.events.model import Cell, Policy
from gpusolver.events.writer import LedgerWriter
from gpusolver.projections.cell_plan import CellPlan

from .forge import POLICY, Forge
from .reports import found
from .tamper import lines
from .world import POLISH, RULES, World

Other = Callable[[CellPlan], CellPlan]
PATIENT, BY_VALUE = replace(POLICY, patience=1), replace(POLICY, order="value")


class Strayed(Forge):
    """The second repetition of the first arm is played by another plan."""

    other: Other = staticmethod(lambda plan: plan)

    def plan(self, cell: Cell) -> CellPlan:
        plan = super().plan(cell)
        return type(self).other(plan) if (cell.repetition, cell.arm) == (2, self.registered.plan[0].arm) else plan


def played(path: Path, arm: str, policy: Policy, other: Other) -> Path:
    """A whole ledger; of `arm`, one cell strays."""
    strayed = type("StrayedHere", (Strayed,), {"other": staticmethod(other)})
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        strayed(ledger, World(), arms=(arm, "off"), policy=policy, rules=RULES + (POLISH,) * (arm == "random")).all()
    return path


STRAYS: dict[str, tuple[str, Policy, Other]] = {
    "another seed draws": ("random", POLICY, lambda plan: replace(plan, seed=plan.seed + 1)),
    "patience left out": ("on", PATIENT, lambda plan: replace(plan, policy=POLICY)),
    "another patience": ("on", PATIENT, lambda plan: replace(plan, policy=replace(POLICY, patience=2))),
    "order left out": ("on", BY_VALUE, lambda plan: replace(plan, policy=POLICY)),
    "another order": ("on", POLICY, lambda plan: replace(plan, policy=BY_VALUE)),
    "an order of its own in an arm that does not evolve": ("off+tabu", POLICY, lambda p: replace(p, policy=BY_VALUE)),
}


@pytest.mark.parametrize("name", STRAYS)
def test_a_cell_that_strays_is_found(tmp_path: Path, name: str) -> None:
    """Where its first firing is another one, and in no cell but its own."""
    arm, policy, other = STRAYS[name]
    straight = played(tmp_path / "straight.db", arm, policy, lambda plan: plan)
    strayed = played(tmp_path / "strayed.db", arm, policy, other)
    assert found(straight) == set()
    streams = {line.seq: line.stream for line in lines(strayed)}
    assert {streams[seq] for seq, kind in found(strayed) if kind == "match"} == {f"run1/toy/tf32-allowed/full/{arm}/2"}
