"""Verdicts: each reason once by hand, then what must hold for any samples."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpusolver.events.model import Statistics
from gpusolver.profilers.artifacts import Samples
from gpusolver.profilers.verdicts import Judgement, credit, judge, margin, physical_floor_ns

from .examples import CHIP, PROBLEM, STATISTICS, UNKNOWN, samples

REGISTERED = Statistics(blocks=40, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)
LONG = 1_000_000  # ns, far above the 16000 ns floor


def verdict(taken: Samples | None, **other: Any) -> Judgement:
    fields: dict[str, Any] = {
        "outcome": "passed",
        "inert": False,
        "samples": taken,
        "problem": PROBLEM,
        "contract": "fp32-strict",
        "chip": CHIP,
        "statistics": STATISTICS,
        "noise_floor": 0.0,
    }
    return judge(**(fields | other))


def ten(a: int, b: int = LONG) -> Samples:
    """Ten blocks of one ratio, so that lower = median = upper = a / b."""
    return samples([(a, b)] * 10)


@pytest.mark.parametrize(
    ("a", "expected", "reason"),
    [
        (1_020_000, "FASTER", "interval beyond margin"),
        (980_000, "SLOWER", "interval beyond margin"),
        (1_000_000, "SAME", "interval within margin"),
        (1_009_999, "SAME", "interval within margin"),
        (1_010_000, "SAME", "interval within margin"),  # exactly at the margin is not beyond it
        (990_099, "SLOWER", "interval beyond margin"),  # 1 / 1.01 = 0.990099009...
        (990_100, "SAME", "interval within margin"),
    ],
)
def test_verdict_by_interval(a: int, expected: str, reason: str) -> None:
    found = verdict(ten(a))
    assert (found.verdict, found.reason, found.inert, found.margin) == (expected, reason, False, 0.01)
    assert found.interval is not None
    assert found.interval.lower == found.interval.upper == a / LONG


@pytest.mark.parametrize("edge", [(1_005_000, 1_030_000), (970_000, 995_000), (900_000, 1_100_000)])
def test_straddling_is_ambiguous(edge: tuple[int, int]) -> None:
    found = verdict(samples([(edge[0], LONG)] * 5 + [(edge[1], LONG)] * 5))
    assert (found.verdict, found.reason) == ("AMBIGUOUS", "interval straddles margin")


def test_noise_floor_widens_the_margin() -> None:
    assert margin(STATISTICS, 0.004) == 0.01
    assert margin(STATISTICS, 0.03) == 0.06
    found = verdict(ten(1_050_000), noise_floor=0.03)  # 5 % faster, where 6 % counts
    assert (found.verdict, found.margin) == ("SAME", 0.06)


def test_gate_comes_first() -> None:
    found = verdict(ten(1_500_000), outcome="wrong_result", inert=True)
    assert found == Judgement(verdict="AMBIGUOUS", reason="gate: wrong_result", interval=None, margin=None, inert=False)


def test_inert_is_same_even_where_the_times_differ() -> None:
    found = verdict(ten(1_500_000), inert=True)
    assert found == Judgement(verdict="SAME", reason="inert", interval=None, margin=None, inert=True)


def test_a_fault_is_the_reason_where_nothing_was_profiled() -> None:
    found = verdict(None, fault="timeout")
    assert found == Judgement(verdict="AMBIGUOUS", reason="timeout", interval=None, margin=None, inert=False)


@pytest.mark.parametrize(
    ("b", "contract", "chip", "expected"),
    [
        (15_999, "fp32-strict", CHIP, "below physical floor"),  # 8e8 FLOP / 50e3 FLOP per ns = 16000 ns
        (16_000, "fp32-strict", CHIP, "interval beyond margin"),
        (15_999, "tf32-allowed", CHIP, "interval beyond margin"),  # 2000 ns at 400 TFLOP/s
        (1_999, "tf32-allowed", CHIP, "below physical floor"),
        (1, "fp32-strict", UNKNOWN, "interval beyond margin"),
    ],
)
def test_a_time_below_physics_is_no_win(b: int, contract: str, chip: Any, expected: str) -> None:
    assert verdict(ten(LONG, b), contract=contract, chip=chip).reason == expected


def test_floor_precedes_too_few_blocks() -> None:
    assert verdict(samples([(LONG, 10)] * 3)).reason == "below physical floor"


def test_floor_is_by_memory_or_by_arithmetic() -> None:
    light = msgspec.structs.replace(PROBLEM, flops=1)
    bare = msgspec.structs.replace(CHIP, peaks_tflops={})
    assert physical_floor_ns(light, "fp32-strict", CHIP) == 800.0  # 4e6 B / 5000 B per ns
    assert physical_floor_ns(PROBLEM, "fp32-strict", CHIP) == 16000.0
    assert physical_floor_ns(PROBLEM, "fp32-strict", bare) is None
    assert physical_floor_ns(PROBLEM, "fp32-strict", msgspec.structs.replace(CHIP, dram_gbps=0.0)) is None
    assert physical_floor_ns(PROBLEM, "fp32-strict", UNKNOWN) is None


@pytest.mark.parametrize(("blocks", "has_interval"), [(7, False), (9, True)])
def test_fewer_blocks_than_registered_are_ambiguous(blocks: int, has_interval: bool) -> None:
    found = verdict(samples([(1_500_000, LONG)] * blocks))
    assert (found.verdict, found.reason) == ("AMBIGUOUS", "too few blocks")
    assert (found.interval is not None) == has_interval


def test_credit() -> None:
    assert [credit(v) for v in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")] == [
        "success",
        "failure",
        "failure",
        "neutral",
    ]


def test_a_kernel_against_itself_is_neither_faster_nor_slower() -> None:
    draw = random.Random(20260101)
    found = [verdict(noisy(draw), statistics=REGISTERED).verdict for _ in range(2000)]
    assert found.count("SAME") > 1900
    assert found.count("FASTER") == found.count("SLOWER") == 0


def noisy(draw: random.Random) -> Samples:
    """Forty blocks of one kernel at 100 us with 0.5 % Gaussian noise."""
    times = [[round(draw.gauss(100_000, 500)) for _ in range(4)] for _ in range(40)]
    return Samples(clock="c", cache="cold", blocks=tuple((a, b, c, d) for a, b, c, d in times))


BLOCKS = st.lists(st.tuples(*[st.integers(900_000, 1_100_000)] * 4), min_size=8, max_size=20)


@given(BLOCKS, st.integers(1_000, 1_100))
def test_swapping_sides_turns_the_verdict(blocks: list[tuple[int, int, int, int]], permille: int) -> None:
    left = [(a1 * permille, b1 * 1000, b2 * 1000, a2 * permille) for a1, b1, b2, a2 in blocks]
    right = [(b1, a1, a2, b2) for a1, b1, b2, a2 in left]
    found, turned = (verdict(Samples(clock="c", cache="cold", blocks=tuple(side))) for side in (left, right))
    seen = found.interval
    assume(seen is not None)
    assert seen is not None
    # One rounding on either side of the margin may fall differently; exactly there nothing is promised.
    edges = [abs(bound - edge) for bound in (seen.lower, seen.upper) for edge in (1.01, 1 / 1.01)]
    assume(min(edges) > 1e-12)
    opposite = {"FASTER": "SLOWER", "SLOWER": "FASTER"}
    assert turned.verdict == opposite.get(found.verdict, found.verdict)


@given(BLOCKS, st.integers(1, 10**6))
def test_the_unit_of_time_does_not_matter(blocks: list[tuple[int, int, int, int]], factor: int) -> None:
    plain = Samples(clock="c", cache="cold", blocks=tuple(blocks))
    scaled = Samples(
        clock="c", cache="cold", blocks=tuple((a * factor, b * factor, c * factor, d * factor) for a, b, c, d in blocks)
    )
    assert verdict(scaled) == verdict(plain)
