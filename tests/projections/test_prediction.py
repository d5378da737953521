"""Predicted against measured gains, in numbers that halve and double exactly."""

from __future__ import annotations

from msgspec.structs import replace

from gpusolver.events.model import Interval, RoundJudged, RuleFired, Verdict
from gpusolver.projections.cell import CellState
from gpusolver.projections.prediction import ALL, PredictionRow, predicted
from gpusolver.projections.runs import RunView

from .support import Outcome, cell_of, context_of, interval, judged, rule

RULES = (rule("first"), rule("second"), rule("second", version=2), rule("third"))


def played(arm: str, *rounds: tuple[str, float, float | None]) -> CellState:
    """A cell of rounds (rule, predicted, median of the measured interval or None)."""
    cell, state = cell_of(arm=arm), CellState(cell=cell_of(arm=arm))
    fired: dict[str, RuleFired] = {}
    ends: list[RoundJudged] = []
    for number, (name, promise, measured) in enumerate(rounds, start=1):
        firing = RuleFired(
            cell=cell, round=number, firing=f"{arm}/{number}.1", rule=name, rule_version=1, prescription="p", incumbent="i",
            context=context_of(), clauses=(), abstained=(), blocked=(), predicted_gain=promise,
        )  # fmt: skip
        verdict: Verdict = "SAME" if measured is None else "FASTER"
        found: Interval | None = None if measured is None else interval(measured)
        ends.append(replace(judged(cell, firing, 1, Outcome(verdict, inert=measured is None)), interval=found))
        fired[firing.firing] = firing
    return replace(state, fired=fired, rounds=tuple(ends))


def view(*cells: CellState) -> RunView:
    return RunView(run="run1", rules=RULES, cells={f"run1/{state.cell.arm}": state for state in cells})


def test_medians_by_rule_over_all_cells_in_the_order_of_the_table() -> None:
    found = predicted(
        view(
            played("on", ("second", 2.0, 1.0), ("first", 4.0, 2.0), ("first", 2.0, 2.0)),
            played("off", ("first", 8.0, 2.0), ("third", 2.0, None)),
        )
    )
    assert found == (
        PredictionRow(rule="first", rounds=3, predicted=4.0, measured=2.0, ratio=0.5),  # ratios 0.5, 1 and 0.25
        PredictionRow(rule="second", rounds=1, predicted=2.0, measured=1.0, ratio=0.5),
        PredictionRow(rule=ALL, rounds=4, predicted=3.0, measured=2.0, ratio=0.5),  # promises 2, 2, 4, 8
    )


def test_one_rule_needs_no_sum_and_none_has_no_rows() -> None:
    assert [row.rule for row in predicted(view(played("on", ("first", 2.0, 1.5))))] == ["first"]
    assert predicted(view(played("on", ("first", 2.0, None)))) == ()
    assert predicted(view()) == ()


def test_a_promise_of_nothing_has_no_ratio() -> None:
    assert predicted(view(played("on", ("first", 0.0, 1.5), ("first", 1.0, 1.5)))) == (
        PredictionRow(rule="first", rounds=1, predicted=1.0, measured=1.5, ratio=1.5),
    )
