"""Order statistics of paired timings: medians, block ratios, the binomial interval. Never draws a random number and never sums floats."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from msgspec import UnsetType

from ..events.errors import BadInput
from ..events.model import Interval, Statistics
from .artifacts import Samples
from .energies import objective_ratios


def lower_median(values: Sequence[int]) -> int:
    """The element at index (n - 1) // 2 of the sorted values; of two middle values the smaller. `values` is not empty."""
    return sorted(values)[(len(values) - 1) // 2]


def rank(blocks: int, tail_num: int, tail_den: int) -> int:
    """Largest k >= 1 for which r_k and r_(n+1-k) miss the median with probability tail_num / tail_den at most; 0 if none.

    Exact in integers: 2 * tail_den * sum of C(n, i) for i < k is compared with tail_num * 2^n (the sign test's two tails).
    BadInput for a tail that is no probability between 0 and 1.
    """
    if not 0 < tail_num <= tail_den:
        raise BadInput(
            f"statistics: the tail must be above 0 and at most 1, found {tail_num}/{tail_den}; state it as in 1/100"
        )
    k, missed = 0, 1
    while 2 * tail_den * missed <= tail_num << blocks:
        k += 1
        missed += comb(blocks, k)
    return k


def block_ratios(samples: Samples) -> list[float]:
    """One ratio (a1 + a2) / (b1 + b2) per ABBA block, in order of measurement; above 1 says that B is faster."""
    return [(a1 + a2) / (b1 + b2) for a1, b1, b2, a2 in samples.blocks]


def b_times(samples: Samples) -> list[int]:
    """All times of B (the source, or right) in ns, in order of measurement."""
    return [time for _, b1, b2, _ in samples.blocks for time in (b1, b2)]


def interval(samples: Samples, statistics: Statistics) -> Interval | None:
    """Order-statistic interval of the median ratio, of times or by the objective; None where the blocks are too few for the tail
    asked for, or lack the energies that the objective is about.
    """
    objective = statistics.objective
    ratios = sorted(block_ratios(samples) if isinstance(objective, UnsetType) else objective_ratios(samples, objective))
    n = len(ratios)
    k = rank(n, statistics.tail_num, statistics.tail_den)
    if k == 0:
        return None
    return Interval(lower=ratios[k - 1], median=ratios[(n + 1) // 2 - 1], upper=ratios[n - k], blocks=n, rank=k)


def noise_floor(aa: Interval) -> float:
    """Resolution of a kernel measured against itself, as a fraction: the farther bound from 1, and 0 at least."""
    return max(aa.upper - 1, 1 / aa.lower - 1, 0.0)
