"""Which kernels are compared after the rounds, and what the comparisons say of a claim. Never measures or rewrites a source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import floor
from typing import Literal

import msgspec
from msgspec import UnsetType

from ..events.model import Cell, ClaimRegistered, ClaimStated, HeadToHead, RunRegistered
from .runs import Group, RunView, cell_state


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of a comparison: the start, an arm's last incumbent (`name` = arm) or a baseline (`name` = its name).

    `strict` asks for the kernel's strict twin: the same text with its line `PRECISION = ` set to `ieee`.
    """

    role: Literal["start", "incumbent", "baseline"]
    name: str = ""
    strict: bool = False


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A head-to-head to measure; ratios are left/right, so above 1 says that right is faster."""

    comparison: str
    left: Side
    right: Side


_START = Side(role="start")
_ON, _ON_TWIN = Side(role="incumbent", name="on"), Side(role="incumbent", name="on", strict=True)
_OFF, _OFF_TWIN = Side(role="incumbent", name="off"), Side(role="incumbent", name="off", strict=True)

ENDPOINTS = (
    Pair(comparison="endpoint", left=_OFF, right=_ON),
    Pair(comparison="endpoint_kernel", left=_OFF_TWIN, right=_ON_TWIN),
    Pair(comparison="total", left=_START, right=_ON),
    Pair(comparison="kernel_part", left=_START, right=_ON_TWIN),
    Pair(comparison="precision_part", left=_ON_TWIN, right=_ON),
    Pair(comparison="tabu", left=Side(role="incumbent", name="off+tabu"), right=_ON),
)


def endpoint_pairs(arms: Collection[str], baselines: Iterable[str] = ()) -> tuple[Pair, ...]:
    """The head-to-heads of one repetition whose `arms` are all planned, those against the problem's baselines last."""
    versus = (Pair(comparison=f"versus:{name}", left=Side(role="baseline", name=name), right=_ON) for name in baselines)
    return tuple(
        pair
        for pair in (*ENDPOINTS, *versus)
        if all(side.name in arms for side in (pair.left, pair.right) if side.role == "incumbent")
    )


def registered_pairs(registration: RunRegistered, group: Group, baselines: Iterable[str]) -> tuple[Pair, ...]:
    """The head-to-heads of a group that are due and, where the run registered which ones it makes, among those."""
    due, listed = endpoint_pairs(planned_arms(registration, group), baselines), registration.comparisons
    return due if isinstance(listed, UnsetType) else tuple(pair for pair in due if pair.comparison in listed)


def planned_arms(registration: RunRegistered, group: Group) -> tuple[str, ...]:
    """The arms planned in a group, in the plan's order."""
    return tuple(cell.arm for cell in registration.plan if _cell(group, cell.arm) == cell)


def recorded_source(view: RunView, group: Group, side: Side) -> str | None:
    """Digest of the kernel that a side starts from (before any strict twin); None for baselines and cells without a profile.

    The start is that of the `on` cell; all cells of a group begin with the same source.
    """
    if side.role == "baseline":
        return None
    state = cell_state(view, _cell(group, "on" if side.role == "start" else side.name))
    # A start that never came to a profile is no kernel to compare: its gate refused it, or its round was cut off.
    if state.start not in state.signals:
        return None
    return state.start if side.role == "start" else state.incumbent


def claim_repetitions(registration: RunRegistered, claim: ClaimRegistered) -> tuple[int, ...]:
    """The repetitions that the plan holds for a claim's problem, contract and pool, ascending."""
    scope = (claim.problem, claim.contract, claim.pool)
    return tuple(
        sorted({cell.repetition for cell in registration.plan if (cell.problem, cell.contract, cell.pool) == scope})
    )


def answer(
    run: str, claim: ClaimRegistered, head_to_heads: Iterable[HeadToHead], repetitions: Iterable[int]
) -> ClaimStated:
    """The answer to a claim from the run's head-to-heads; a plan without repetitions of it leaves it unanswerable.

    Of several comparisons of one repetition the first that has a median counts, so that no later one can improve on it.
    Medians and lower bounds (left/right, identical kernels 1.0) stand in the order of the repetitions that have one.
    """
    found: dict[int, tuple[float, float]] = {}
    for comparison in head_to_heads:
        ratio = median_and_lower(comparison)
        if _answers(comparison, claim) and ratio is not None:
            found.setdefault(comparison.repetition, ratio)
    wanted = sorted(set(repetitions))
    seen = [found[repetition] for repetition in wanted if repetition in found]
    verdict: Literal["upheld", "not upheld", "unanswerable"] = "unanswerable"
    if wanted and len(seen) == len(wanted):
        upheld = all(reaches(median, claim.at_least, claim.decimals) for median, _ in seen)
        verdict = "upheld" if upheld else "not upheld"
    return ClaimStated(
        run=run,
        claim=claim.claim,
        medians=tuple(median for median, _ in seen),
        lowers=tuple(lower for _, lower in seen),
        answer=verdict,
    )


def reaches(ratio: float, at_least: float, decimals: int) -> bool:
    """Whether a ratio meets a bound, both rounded half up."""
    return _rounded(ratio, decimals) >= _rounded(at_least, decimals)


def median_and_lower(comparison: HeadToHead) -> tuple[float, float] | None:
    """Median and lower bound of a comparison; None for a fault, and for samples too few to bound the median."""
    if comparison.outcome == "identical":
        return 1.0, 1.0
    if comparison.outcome != "measured" or comparison.interval is None:
        return None
    return comparison.interval.median, comparison.interval.lower


def _answers(comparison: HeadToHead, claim: ClaimRegistered) -> bool:
    return (comparison.problem, comparison.contract, comparison.pool, comparison.comparison) == (
        claim.problem,
        claim.contract,
        claim.pool,
        claim.comparison,
    )


def _rounded(ratio: float, decimals: int) -> int:
    """Half up, in units of the last decimal."""
    units: int = 10**decimals
    return floor(ratio * units + 0.5)


def _cell(group: Group, arm: str) -> Cell:
    return Cell(problem=group.problem, contract=group.contract, pool=group.pool, arm=arm, repetition=group.repetition)
