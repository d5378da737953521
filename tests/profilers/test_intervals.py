"""Order statistics against sorted lists done by hand and binomial sums done in fractions."""

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Interval, Statistics
from gpusolver.profilers.artifacts import Samples
from gpusolver.profilers.intervals import b_times, block_ratios, interval, lower_median, noise_floor, rank

from .examples import STATISTICS, samples

PAIRS = st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)), min_size=1, max_size=40)


def miss(blocks: int, k: int) -> Fraction:
    """Probability that the median lies outside r_k .. r_(n+1-k): both tails of n fair coins."""
    return 2 * sum((Fraction(comb(blocks, i), 2**blocks) for i in range(k)), Fraction(0))


@pytest.mark.parametrize(("values", "expected"), [([5], 5), ([9, 1], 1), ([3, 1, 2], 2), ([4, 1, 3, 2], 2)])
def test_lower_median_takes_the_smaller_middle(values: list[int], expected: int) -> None:
    assert lower_median(values) == expected


def test_rank_of_forty_blocks_at_one_percent() -> None:
    assert miss(40, 12) <= Fraction(1, 100) < miss(40, 13)
    assert rank(40, 1, 100) == 12


@pytest.mark.parametrize(
    ("blocks", "expected"),
    # 2 / 2^7 = 1.6 % > 1 %; 2 / 2^8 = 0.78 %; ten blocks: 2 * 11 / 1024 = 2.1 %, so still only the outermost.
    # Eleven: 2 * 12 / 2048 = 1.17 %; twelve: 2 * 13 / 4096 = 0.63 %.
    [(0, 0), (1, 0), (7, 0), (8, 1), (10, 1), (11, 1), (12, 2)],
)
def test_rank_of_few_blocks(blocks: int, expected: int) -> None:
    assert rank(blocks, 1, 100) == expected


@given(st.integers(1, 80), st.integers(1, 50))
def test_rank_is_the_largest_within_the_tail(blocks: int, percent: int) -> None:
    k = rank(blocks, percent, 100)
    assert k == 0 or miss(blocks, k) <= Fraction(percent, 100)
    assert miss(blocks, k + 1) > Fraction(percent, 100)
    assert 2 * k <= blocks + 1


@pytest.mark.parametrize("tail", [(0, 100), (-1, 100), (101, 100), (1, 0)])
def test_rank_refuses_a_tail_that_is_no_probability(tail: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="above 0 and at most 1"):
        rank(40, *tail)


def test_ratio_sums_both_sides_of_a_block() -> None:
    uneven = Samples(clock="c", cache="cold", blocks=((10, 4, 6, 20), (3, 2, 1, 6)))
    assert block_ratios(uneven) == [3.0, 3.0]  # 30 / 10 and 9 / 3
    assert b_times(uneven) == [4, 6, 2, 1]


def test_interval_of_a_list_sorted_by_hand() -> None:
    # Ratios a / 100, out of order; at a 10 % tail eight blocks give rank 2: 2 * (1 + 8) / 256 = 7.0 %, with 28 more 28.9 %.
    taken = samples([(a, 100) for a in (108, 101, 107, 102, 106, 103, 105, 104)])
    wide = Statistics(blocks=8, tail_num=1, tail_den=10, margin=0.01, floor_multiple=2.0)
    assert interval(taken, wide) == Interval(lower=1.02, median=1.04, upper=1.07, blocks=8, rank=2)


def test_seven_blocks_give_no_interval_at_one_percent() -> None:
    assert interval(samples([(101, 100)] * 7), STATISTICS) is None


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(0.8, 1.125, 0.25), (0.96875, 1.25, 0.25), (1.0, 1.0, 0.0), (1.25, 1.5, 0.5), (0.5, 0.75, 1.0)],
)
def test_noise_floor_is_the_farther_side(lower: float, upper: float, expected: float) -> None:
    assert noise_floor(Interval(lower=lower, median=1.0, upper=upper, blocks=8, rank=1)) == expected


@given(PAIRS, st.randoms(use_true_random=False))
def test_order_of_blocks_leaves_the_interval(pairs: list[tuple[int, int]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(pairs, len(pairs))
    assert interval(samples(shuffled), STATISTICS) == interval(samples(pairs), STATISTICS)


@given(PAIRS)
def test_bounds_enclose_the_median(pairs: list[tuple[int, int]]) -> None:
    found = interval(samples(pairs), STATISTICS)
    assert (found is None) == (len(pairs) < 8)
    assert found is None or found.lower <= found.median <= found.upper
