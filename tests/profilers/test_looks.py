"""Verdicts by looks: each look at its share of the tail, worked by hand with the binomial sums."""

from __future__ import annotations

from fractions import Fraction
from math import comb

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.events.model import Statistics
from gpusolver.profilers.intervals import rank
from gpusolver.profilers.verdicts import Judgement, is_final, judge, look

from .examples import CHIP, PROBLEM, UNKNOWN, samples

STATISTICS = Statistics(blocks=20, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0, looks=(10, 20))


def judged(ratios: list[float], statistics: Statistics = STATISTICS) -> Judgement:
    taken = samples([(round(1_000_000 * ratio), 1_000_000) for ratio in ratios])
    return judge(
        outcome="passed", inert=False, samples=taken, problem=PROBLEM, contract="fp32-strict", chip=UNKNOWN,
        statistics=statistics, noise_floor=0.0,
    )  # fmt: skip


def test_two_looks_halve_the_tail() -> None:
    """n = 10: 2 x 200 x 1 = 400 <= 1024 < 2 x 200 x 11, so rank 1 (2 at the whole tail would need 2 x 100 x 11 = 2200 <= 1024: no)."""
    assert (look(STATISTICS, 10).blocks, look(STATISTICS, 10).tail_den) == (10, 200)
    assert rank(10, 1, 200) == 1
    found = judged([1.05] * 10)
    assert found.verdict == "FASTER" and found.interval is not None and found.interval.rank == 1


def test_an_early_look_that_straddles_is_not_final_and_a_later_one_may_be() -> None:
    early = judged([1.05] * 9 + [1.0])
    assert (early.verdict, early.reason, is_final(early)) == ("AMBIGUOUS", "interval straddles margin", False)
    # n = 20, tail 1/200: 2 x 200 x (1 + 20 + 190 + 1140) = 540400 <= 1048576, and 4845 more are too many: rank 4.
    late = judged([1.05] * 19 + [1.0])
    assert late.verdict == "FASTER" and is_final(late)
    assert late.interval is not None and (late.interval.rank, late.interval.lower) == (4, 1.05)


def test_blocks_between_looks_are_too_few_for_the_next() -> None:
    between = judged([1.05] * 15)
    assert (between.verdict, between.reason, is_final(between)) == ("AMBIGUOUS", "too few blocks", False)


def test_same_and_slower_end_a_look_too() -> None:
    assert judged([1.0] * 10).verdict == "SAME" and is_final(judged([1.0] * 10))
    assert judged([0.9] * 10).verdict == "SLOWER" and is_final(judged([0.9] * 10))


def test_below_the_physical_floor_is_final_at_the_first_look() -> None:
    """More blocks of impossible times would be no more possible: 0.8 GFLOP take 16 us at 50 TFLOP/s."""
    taken = samples([(15_000, 15_000)] * 10)
    found = judge(
        outcome="passed", inert=False, samples=taken, problem=PROBLEM, contract="fp32-strict", chip=CHIP,
        statistics=STATISTICS, noise_floor=0.0,
    )  # fmt: skip
    assert found.reason == "below physical floor" and is_final(found)


@given(st.sets(st.integers(1, 120), min_size=1, max_size=16), st.integers(2, 1000))
def test_the_tails_of_all_looks_together_are_within_the_registered_one(looks: set[int], tail_den: int) -> None:
    """Exact: the chance that an interval misses the median, summed over every look at which a verdict may fall."""
    ends = tuple(sorted(looks))
    registered = replace(STATISTICS, blocks=ends[-1], looks=ends, tail_den=tail_den)
    missed = Fraction(0)
    for blocks in ends:
        at = look(registered, blocks)
        below = sum(comb(blocks, i) for i in range(rank(blocks, at.tail_num, at.tail_den)))
        missed += Fraction(2 * below, 2**blocks)
    assert missed <= Fraction(1, tail_den)


def test_without_looks_nothing_changes() -> None:
    plain = Statistics(blocks=10, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)
    assert look(plain, 10) == plain
    assert judged([1.05] * 9, plain).reason == "too few blocks"
    assert judged([1.05] * 10, plain).verdict == "FASTER"


def test_a_single_look_is_the_same_as_none() -> None:
    one = replace(STATISTICS, blocks=10, looks=(10,))
    plain = Statistics(blocks=10, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)
    for ratios in ([1.05] * 10, [1.0] * 10, [1.05] * 9 + [1.0]):
        assert judged(ratios, one) == judged(ratios, plain)
