"""Faults of timing that others met, as samples: each ends in the verdict that the samples deserve, never in an error or a gain."""

from __future__ import annotations

import random

import msgspec
import pytest

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Statistics
from gpusolver.profilers.artifacts import Samples, decode
from gpusolver.profilers.intervals import b_times, interval, lower_median
from gpusolver.profilers.signals import signals
from gpusolver.profilers.verdicts import Judgement, judge

from .examples import CHIP, PROBLEM, samples

REGISTERED = Statistics(blocks=40, tail_num=1, tail_den=200, margin=0.01, floor_multiple=2.0)


def judged(taken: Samples, noise_floor: float = 0.0) -> Judgement:
    return judge(
        outcome="passed", inert=False, samples=taken, problem=PROBLEM, contract="fp32-strict", chip=CHIP,
        statistics=REGISTERED, noise_floor=noise_floor,
    )  # fmt: skip


def abba(times: list[int]) -> Samples:
    """Consecutive times of one and the same kernel, as they fall into blocks."""
    blocks = tuple((a, b, c, d) for a, b, c, d in zip(*(times[i::4] for i in range(4)), strict=True))
    return Samples(clock="cuda_event", cache="cold", blocks=blocks)


def test_b35_clocks_that_fall_under_load_slow_neither_side() -> None:
    """Identical code; 15 % slower at the end than at the start, call by call: 100 us to 115 us over 160 calls."""
    found = judged(abba([100_000 + 15_000 * i // 159 for i in range(160)]))
    assert found.verdict == "SAME"
    assert found.interval is not None and found.interval.median == pytest.approx(1, abs=1e-3)


def test_b36_clocks_that_ramp_up_favour_neither_side() -> None:
    """Identical code; from 112 us down to 88 us over the first 24 calls, then steady: the time stated is the steady one."""
    ramp = [112_000 - 1_000 * i for i in range(24)]
    taken = abba(ramp + [88_000] * 136)
    assert judged(taken).verdict == "SAME"
    assert lower_median(sorted(b_times(taken))) == 88_000


def test_b38_a_time_of_nothing_is_no_measurement() -> None:
    """It would be a divisor later on; it is refused where it comes in, by name and place."""
    raw = msgspec.json.encode({"clock": "cuda_event", "cache": "cold", "unit": "ns", "blocks": [[100, 0, 100, 100]]})
    with pytest.raises(BadInput, match=r"'samples'.*blocks"):
        decode(Samples, raw)


@pytest.mark.parametrize("unit", ["us", "ms", ""])
def test_b40_times_of_another_unit_are_refused(unit: str) -> None:
    """1.5 ms beside 300000 ns must never become a ratio of 0.000005."""
    row = {"clock": "cuda_event", "cache": "cold", "unit": unit, "blocks": [[1, 1, 1, 1]]}
    with pytest.raises(BadInput, match="unit"):
        decode(Samples, msgspec.json.encode(row))


def test_b44_a_first_call_twenty_times_as_slow_moves_no_claim() -> None:
    """213.6 us among 10.2 to 10.4 us: the time is a median, and the interval is of ranks."""
    taken = samples([(10_300, 213_600)] + [(10_300, 10_300 + 100 * (i % 3 - 1)) for i in range(39)])
    seen = signals(PROBLEM, "fp32-strict", CHIP, 4000.0, taken, None, None)
    assert seen["time_us"] == 10.3
    within = interval(taken, REGISTERED)
    assert within is not None and 0.99 <= within.lower <= within.median <= within.upper <= 1.01


def test_b45_what_noise_hides_is_ambiguous_and_never_the_same() -> None:
    """Kernels of 20 and 40 us in calls that wobble by 100 to 300 us: with so few pairs nothing can be told apart, and nothing is called equal."""
    chance = random.Random(1)
    wobble = [chance.randrange(100_000, 300_000) for _ in range(160)]
    taken = abba([w + (20_000 if i % 4 in (0, 3) else 40_000) for i, w in enumerate(wobble)])
    found = judged(taken)
    assert (found.verdict, found.reason) == ("AMBIGUOUS", "interval straddles margin")


def test_b42_one_kernel_under_noise_is_never_promoted() -> None:
    """The same kernel for 50 rounds, times from N(100 us, 2 %), A's and B's alike: no round is FASTER."""
    chance = random.Random(42)
    verdicts = [judged(abba([round(chance.gauss(100_000, 2_000)) for _ in range(160)])).verdict for _ in range(50)]
    assert "FASTER" not in verdicts and "SLOWER" not in verdicts
