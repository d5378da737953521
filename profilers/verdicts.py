"""The verdict of a round from its samples and the registered statistics. Never knows which rule prompted the candidate."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET
from msgspec.structs import replace

from ..events.model import Chip, Credit, Interval, ProblemDeclared, Statistics, Value, Verdict
from .artifacts import Samples
from .energies import warm_b
from .intervals import b_times, interval, lower_median
from .signals import peak
from .witnesses import Witnesses, doubt, wrong_while_timed


class Judgement(Value, frozen=True):
    """What `RoundJudged` records of a verdict; `interval` and `margin` are None where nothing was measured."""

    verdict: Verdict
    reason: str
    interval: Interval | None
    margin: float | None
    inert: bool


CREDIT: dict[Verdict, Credit] = {"FASTER": "success", "SLOWER": "failure", "SAME": "failure", "AMBIGUOUS": "neutral"}


def credit(verdict: Verdict) -> Credit:
    """What a verdict does to the rule that prompted the candidate."""
    return CREDIT[verdict]


def margin(statistics: Statistics, noise_floor: float) -> float:
    """Smallest change that counts, as a fraction: the registered one, or the multiple of the incumbent's noise floor."""
    return max(statistics.margin, statistics.floor_multiple * noise_floor)


def physical_floor_ns(problem: ProblemDeclared, contract: str, chip: Chip) -> float | None:
    """Shortest possible time in ns by the data sheet's DRAM rate and peak; None where it lacks either."""
    top = peak(chip, contract)
    if not top or not chip.dram_gbps:
        return None
    return max(problem.min_bytes / chip.dram_gbps, problem.flops / (top * 1000))


def _too_many(statistics: Statistics, samples: Samples, problem: ProblemDeclared, contract: str, chip: Chip) -> bool:
    """Whether the warm calls that an objective goes by are more than the peak allows; their bytes may have come from a cache."""
    warm, top = warm_b(samples), peak(chip, contract)
    if statistics.objective is UNSET or warm is None or not top:
        return False
    return 1_000_000 * warm[0] / warm[1] < problem.flops / (top * 1000)


def judge(
    *,
    outcome: str,
    inert: bool,
    samples: Samples | None,
    fault: str = "not measured",
    problem: ProblemDeclared,
    contract: str,
    chip: Chip,
    statistics: Statistics,
    noise_floor: float,
    witnesses: Witnesses | None = None,
) -> Judgement:
    """The verdict by replay/FORMAT.md section 6.1, first reason that applies.

    `outcome` is the candidate's gate outcome, `samples` its times (B) against the incumbent's (A), or None with the `fault` that
    prevented them; `noise_floor` is the incumbent's latest. An unknown chip has no physical floor to fall under. With registered
    bounds a FASTER of a round needs its `witnesses`; None: a pair, of which none are asked.
    """
    if outcome != "passed":
        return Judgement(verdict="AMBIGUOUS", reason=f"gate: {outcome}", interval=None, margin=None, inert=False)
    if inert:
        return Judgement(verdict="SAME", reason="inert", interval=None, margin=None, inert=True)
    if samples is None:
        return Judgement(verdict="AMBIGUOUS", reason=fault, interval=None, margin=None, inert=False)
    at = look(statistics, len(samples.blocks))
    seen, beyond = interval(samples, at), margin(statistics, noise_floor)
    floor = physical_floor_ns(problem, contract, chip)
    verdict: Verdict = "AMBIGUOUS"
    if wrong_while_timed(statistics, samples, problem.limits[contract]):
        reason = "wrong while timed"
    elif floor is not None and (
        lower_median(b_times(samples)) < floor or _too_many(statistics, samples, problem, contract, chip)
    ):
        reason = "below physical floor"
    elif statistics.objective is not UNSET and samples.energy is None:
        reason = "no energies"
    elif seen is None or seen.blocks < at.blocks:
        reason = "too few blocks"
    else:
        verdict, reason = _compare(seen, beyond)
        if verdict == "FASTER" and witnesses is not None and statistics.bounds is not UNSET:
            against = doubt(statistics, statistics.bounds, samples, seen.lower, witnesses)
            verdict, reason = ("AMBIGUOUS", against) if against else (verdict, reason)
    return Judgement(verdict=verdict, reason=reason, interval=seen, margin=beyond, inert=False)


UNDECIDED = ("interval straddles margin", "too few blocks")
"""Reasons that more blocks may lift."""


def look(statistics: Statistics, blocks: int) -> Statistics:
    """The statistics of the look that has `blocks` blocks: that number and a share of the tail. A number between two looks is too few for the next.

    By the union bound the tails of all looks together are at most the registered one, however early a round ends.
    """
    if statistics.looks is UNSET:
        return statistics
    due = next((number for number in statistics.looks if number >= blocks), statistics.blocks)
    return replace(statistics, blocks=due, tail_den=statistics.tail_den * len(statistics.looks))


def is_final(judged: Judgement) -> bool:
    """Whether a look's verdict stands, so that no further blocks are measured."""
    return judged.reason not in UNDECIDED


def _compare(seen: Interval, beyond: float) -> tuple[Verdict, str]:
    above, below = 1 + beyond, 1 / (1 + beyond)
    side: Literal["FASTER", "SLOWER"] | None = (
        "FASTER" if seen.lower > above else "SLOWER" if seen.upper < below else None
    )
    if side is not None:
        return side, "interval beyond margin"
    if seen.lower >= below and seen.upper <= above:
        return "SAME", "interval within margin"
    return "AMBIGUOUS", "interval straddles margin"
