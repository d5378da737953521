"""Answers to registered claims, by the rounding rule of FORMAT.md 6.8. Never measures."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Literal

import msgspec

from ..events.model import ClaimRegistered, Interval

Answer = Literal["upheld", "not upheld", "unanswerable"]
_MOST_DECIMALS = 15


class Answered(msgspec.Struct, frozen=True):
    """A claim's answer with the interval of each repetition that has one (None: equal sources, ratio 1)."""

    medians: tuple[float, ...]
    lowers: tuple[float, ...]
    uppers: tuple[float, ...]
    answer: Answer


def answer(claim: ClaimRegistered, intervals: Sequence[tuple[float, float, float] | None]) -> Answered:
    """Answer a claim from (lower, median, upper) of each planned repetition; None where a repetition has none."""
    known = [found for found in intervals if found is not None]
    reached = [units(found[1], claim.decimals) >= units(claim.at_least, claim.decimals) for found in known]
    verdict: Answer = "upheld" if all(reached) else "not upheld"
    if not known or len(known) < len(intervals):
        verdict = "unanswerable"
    lowers, medians, uppers = (tuple(found[i] for found in known) for i in range(3))
    return Answered(medians, lowers, uppers, verdict)


def bounds(found: Interval) -> tuple[float, float, float]:
    """Lower, median and upper of an interval."""
    return found.lower, found.median, found.upper


def units(ratio: float, decimals: int) -> int:
    """The ratio in units of its last printed decimal, rounded half up."""
    if not 0 <= decimals <= _MOST_DECIMALS:
        raise ValueError(f"decimals {decimals} outside 0..{_MOST_DECIMALS}")
    scale: int = 10**decimals
    return floor(ratio * scale + 0.5)
