"""What asking a rule next is worth: expected log-gain per GPU second, in integers and fractions. Never reads a clock or a file."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import frexp

import msgspec

from ..events.model import Rule

_STEPS = 20
_BITS = 52


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule has to show: credited outcomes, and the sampled nanoseconds of each of its rounds that was timed."""

    successes: int = 0
    failures: int = 0
    costs_ns: tuple[int, ...] = ()


def binary_log(gain: float) -> int:
    """log2 of a gain in units of 2**-20, by squaring in integers (replay/FORMAT.md 6.6); 0 where there is nothing to gain."""
    if gain <= 1:
        return 0
    fraction, exponent = frexp(gain)
    x, log = int(fraction * 2 ** (_BITS + 1)), exponent - 1
    for _ in range(_STEPS):
        x, log = x * x >> _BITS, 2 * log
        if x >> (_BITS + 1):
            x, log = x >> 1, log + 1
    return log


def worth(gain: float, record: Record, prior_ns: int) -> Fraction:
    """Confidence times log2 of the predicted gain, over the mean cost of a round, of which the prior is one sample."""
    chance = Fraction(1 + record.successes, 2 + record.successes + record.failures)
    cost = Fraction(prior_ns + sum(record.costs_ns), 1 + len(record.costs_ns))
    return chance * binary_log(gain) / cost


def by_worth(rules: Iterable[tuple[Rule, Fraction]]) -> tuple[Rule, ...]:
    """(tier, stop rules first, larger worth first, name): no position and no promotion decides."""

    def key(entry: tuple[Rule, Fraction]) -> tuple[int, bool, Fraction, str]:
        rule, value = entry
        return (rule.tier, not rule.stop, -value, rule.name)

    return tuple(rule for rule, _ in sorted(rules, key=key))
