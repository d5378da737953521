"""The order of asking by expected log-gain per GPU second (FORMAT.md 6.6), exact in integers. Never looks at a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from ..events.model import Rule

UNIT = 20
"""L counts in 2**-20 of a factor of two."""


def log_gain(gain: float) -> int:
    """L of the page: the binary logarithm of a gain above 1, digit by digit; 0 of any other."""
    if gain <= 1:
        return 0
    top, bottom = gain.as_integer_ratio()
    whole = top.bit_length() - bottom.bit_length()
    if top < bottom << whole:
        whole -= 1
    digits = (top << 52) // (bottom << whole)  # exact: a binary64 has 53 digits
    result = whole
    for _ in range(UNIT):
        digits = (digits * digits) >> 52
        bit = digits >= 1 << 53
        digits >>= bit
        result = 2 * result + bit
    return result


def value(gain: float, successes: int, failures: int, costs: list[int], prior: int) -> Fraction:
    """Expected log-gain over expected cost: (1 + s) * L * (1 + m) / ((2 + s + f) * (P + all costs))."""
    above = (1 + successes) * log_gain(gain) * (1 + len(costs))
    return Fraction(above, (2 + successes + failures) * (prior + sum(costs)))


def by_value(rules: Iterable[Rule], valued: Callable[[Rule], Fraction]) -> list[Rule]:
    """Tier by tier: stop rules, then the others from the largest value down; names part equals."""
    return sorted(rules, key=lambda rule: (rule.tier, 0 if rule.stop else 1, -valued(rule), rule.name))
