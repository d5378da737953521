"""Arithmetic in which a missing operand, or a divisor of 0, makes the result missing. Never stands in a default for a value."""

from __future__ import annotations

from collections.abc import Iterable

Number = int | float | None
Metrics = dict[str, Number]


def div(a: Number, b: Number) -> float | None:
    """a / b, absent where either is absent or b is 0."""
    return None if a is None or b is None or b == 0 else a / b


def plus(*terms: Number) -> Number:
    """The sum from left to right, absent where a term is."""
    total: int | float = 0
    for term in terms:
        if term is None:
            return None
        total += term
    return total


def less(a: Number, b: Number) -> Number:
    """a - b, absent where either is."""
    return None if a is None or b is None else a - b


def times(a: Number, b: Number) -> Number:
    """a * b, absent where either is."""
    return None if a is None or b is None else a * b


def at_most(bound: float, value: Number) -> Number:
    """The smaller of a bound and a value, absent where the value is."""
    return None if value is None else min(bound, value)


def largest(values: Iterable[Number]) -> Number:
    """The largest of the values that are there, absent where none is."""
    return max((value for value in values if value is not None), default=None)


def smallest(*values: Number) -> Number:
    """The smallest of all values, absent where one is."""
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None
