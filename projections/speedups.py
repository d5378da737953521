"""How much faster than PyTorch eager a run's winners are, beside what PyTorch itself offers. Measures and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from statistics import fmean, median

import msgspec

from ..events.model import HeadToHead
from .ablation import AblationRow
from .claims import median_and_lower
from .runs import Group

_VERSUS, WRONG = "versus:", "wrong while timed"
EAGER = "eager_fp32"
"""The denominator of every speed-up here: PyTorch eager in IEEE fp32."""


class Speedup(msgspec.Struct, frozen=True, kw_only=True):
    """One group's winner and baselines over eager fp32: above 1 is faster than it.

    A baseline's is the ratio of two head-to-heads with one winner, (eager / winner) / (baseline / winner), all of one run. `best` is
    the largest of the baselines', eager's own 1 included. `loses`: the whole interval says that the winner is slower than eager.
    `wrong` are the baselines of which none is stated, for answers were wrong while they were timed beside the winner.
    """

    group: Group
    winner: float
    baselines: dict[str, float]
    best: float
    loses: bool
    wrong: tuple[str, ...] = ()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Speed-ups over eager fp32 under one contract and of one kind of names: (geometric mean, median) of the winner and of each rival."""

    contract: str
    kind: str
    rows: int
    winner: tuple[float, float]
    rivals: dict[str, tuple[float, float]]
    losses: tuple[str, ...]


def speedups(rows: Iterable[AblationRow]) -> tuple[Speedup, ...]:
    """Of every group that holds a measured comparison with eager fp32 and with every other baseline that gave right answers."""
    found = (_speedup(row) for row in rows)
    return tuple(each for each in found if each is not None)


def left_out(rows: Iterable[AblationRow]) -> tuple[Group, ...]:
    """The groups that no speed-up is stated of: without a winner, or a comparison of theirs was not measured."""
    return tuple(row.group for row in rows if _speedup(row) is None)


def summaries(found: Sequence[Speedup]) -> tuple[Summary, ...]:
    """By contract and by kind, in order of appearance; only over groups that have the same baselines."""
    keys = dict.fromkeys((each.group.contract, kind(each.group.problem), tuple(each.baselines)) for each in found)
    return tuple(_summary(key, [each for each in found if _key(each) == key]) for key in keys)


def kind(problem: str) -> str:
    """The first two parts of a dotted name: `kernelbench.level1` of `kernelbench.level1.19_ReLU`; empty for a name of fewer than three."""
    parts = problem.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else ""


def _key(each: Speedup) -> tuple[str, str, tuple[str, ...]]:
    return each.group.contract, kind(each.group.problem), tuple(each.baselines)


def _speedup(row: AblationRow) -> Speedup | None:
    every = {name.removeprefix(_VERSUS): h for name, h in row.head_to_heads.items() if name.startswith(_VERSUS)}
    wrong = tuple(name for name, entry in every.items() if name != EAGER and entry.outcome == WRONG)
    versus = {name: entry for name, entry in every.items() if name not in wrong}
    ratios = {name: ratio[0] for name, entry in versus.items() if (ratio := median_and_lower(entry)) is not None}
    if EAGER not in ratios or len(ratios) < len(versus):
        return None
    winner = ratios[EAGER]
    baselines = {name: winner / ratio for name, ratio in ratios.items() if name != EAGER}
    return Speedup(
        group=row.group,
        winner=winner,
        baselines=baselines,
        best=max(1.0, *baselines.values()) if baselines else 1.0,
        loses=_loses(versus[EAGER]),
        wrong=wrong,
    )


def _loses(entry: HeadToHead) -> bool:
    return entry.interval is not None and entry.interval.upper < 1.0


def _summary(key: tuple[str, str, tuple[str, ...]], members: Sequence[Speedup]) -> Summary:
    contract, name, baselines = key
    rivals = {each: _middle([m.baselines[each] for m in members]) for each in baselines}
    rivals["best of these and eager"] = _middle([m.best for m in members])
    return Summary(
        contract=contract,
        kind=name,
        rows=len(members),
        winner=_middle([m.winner for m in members]),
        rivals=rivals,
        losses=tuple(m.group.problem for m in members if m.loses),
    )


def _middle(values: Sequence[float]) -> tuple[float, float]:
    return exp(fmean(log(value) for value in values)), median(values)
