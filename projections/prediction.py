"""Predicted against measured gain, rule by rule: how well a rule knows its worth. Never changes a prediction or a verdict."""

from __future__ import annotations

from statistics import median

import msgspec
from msgspec import UNSET

from .runs import RunView

ALL = "all rules"


_NO_MEASURE = ("below physical floor", "too few blocks")


class PredictionRow(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the rounds of a rule (or of ALL) that have an interval; `ratio` = median of measured / predicted."""

    rule: str
    rounds: int
    predicted: float
    measured: float
    ratio: float


def predicted(view: RunView) -> tuple[PredictionRow, ...]:
    """One row for each rule that prompted a measured candidate, in the order of the table, and after several rows one over ALL.

    Refused rounds have no measure. An inert candidate is left out although it measures 1 by construction: it says that the
    prescription did nothing, not what it would have been worth. Times below the physical floor, and too few blocks, measure nothing, and an objective
    other than latency no gain in time. A promise of 0 cannot be divided by, and is left out too.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    if view.registration is not None and view.registration.statistics.objective is not UNSET:
        return ()
    for state in view.cells.values():
        for judged in state.rounds:
            promised = state.fired[judged.firing].predicted_gain
            if judged.interval is not None and judged.reason not in _NO_MEASURE and promised > 0:
                pairs.setdefault(judged.rule, []).append((promised, judged.interval.median))
    names = dict.fromkeys(rule.name for rule in view.rules)
    found = [_row(name, pairs[name]) for name in names if name in pairs]
    if len(found) > 1:
        found.append(_row(ALL, [pair for measured in pairs.values() for pair in measured]))
    return tuple(found)


def _row(rule: str, found: list[tuple[float, float]]) -> PredictionRow:
    return PredictionRow(
        rule=rule,
        rounds=len(found),
        predicted=median(promise for promise, _ in found),
        measured=median(measured for _, measured in found),
        ratio=median(measured / promise for promise, measured in found),
    )
