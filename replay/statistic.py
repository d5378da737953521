"""Intervals, noise floors and verdicts of FORMAT.md 6.1, from blocks of integer samples. Never reads a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..events.model import Chip, Credit, Interval, Limits, ProblemDeclared, Statistics, Verdict
from .artifacts import Energies, Samples
from .bounds import WRONG_WHILE_TIMED, Witnesses, asks, doubt, outputs_right, right_so_far
from .objective import NO_ENERGIES, beyond_peak, denied, ratios

FAULTS = ("worker_lost", "timeout", "request_failed", "context_lost")
"""Infrastructure faults that leave a candidate or a comparison without samples."""
STRADDLES, TOO_FEW = "interval straddles margin", "too few blocks"
MOST_LOOKS = 16
Block = tuple[int, int, int, int]
CREDIT: dict[str, Credit] = {"FASTER": "success", "SLOWER": "failure", "SAME": "failure", "AMBIGUOUS": "neutral"}
SPLIT, SPLIT_PRODUCTS = "tf32x3", 3
PATHS = {"fp32-strict": ("fp32", SPLIT), "tf32-allowed": ("fp32", "tf32"), "bf16-allowed": ("fp32", "tf32", "bf16")}


class Judgement(msgspec.Struct, frozen=True):
    """A verdict and its grounds; `reason` None: one of FAULTS, which of them is a fact."""

    verdict: Verdict
    reason: str | None
    inert: bool = False
    interval: Interval | None = None
    margin: float | None = None


def lower_median(values: Sequence[int]) -> int:
    """Element (n - 1) // 2 of the sorted values. Raises IndexError where there are none."""
    return sorted(values)[(len(values) - 1) // 2]


@lru_cache(maxsize=64)
def rank(n: int, tail_num: int, tail_den: int) -> int:
    """Largest k with 2 * tail_den * sum of C(n, i) for i < k at most tail_num * 2^n; 0 if there is none."""
    total, term, best, bound = 0, 1, 0, tail_num << n
    for k in range(1, n + 1):
        total += term
        if 2 * tail_den * total > bound:
            break
        best, term = k, term * (n - k + 1) // k
    return best


def interval(samples: Samples, statistics: Statistics) -> Interval | None:
    """Order-statistic interval of the ratios A/B, of times or by the objective; None where the blocks are too few for the tail."""
    return _interval(samples.blocks, samples.energy, statistics)


@lru_cache(maxsize=1024)
def _interval(blocks: tuple[Block, ...], energy: Energies | None, statistics: Statistics) -> Interval | None:
    wanted = statistics.objective
    if isinstance(wanted, UnsetType):
        found = sorted((a1 + a2) / (b1 + b2) for a1, b1, b2, a2 in blocks)
    else:
        found = sorted(ratios(energy, wanted))
    n = len(found)
    k = rank(n, statistics.tail_num, statistics.tail_den)
    if k == 0:
        return None
    return Interval(lower=found[k - 1], median=found[(n + 1) // 2 - 1], upper=found[n - k], blocks=n, rank=k)


def noise_floor(aa: Interval) -> float:
    """How far an A/A interval strays from 1, never under 0."""
    return max(aa.upper - 1, 1 / aa.lower - 1, 0.0)


def peak(chip: Chip, contract: str) -> float | None:
    """Largest data-sheet peak (TFLOP/s) among the paths that the contract allows; None where the chip has none of them."""
    return max((chip.peaks_tflops[path] for path in PATHS[contract] if path in chip.peaks_tflops), default=None)


def paths(chip: Chip, contract: str) -> tuple[str, ...]:
    """What a contract allows; split products only where the chip is stated to have them, which chips of older ledgers are not."""
    return tuple(path for path in PATHS[contract] if path != SPLIT or SPLIT in chip.peaks_tflops)


def physical_floor(problem: ProblemDeclared, chip: Chip, contract: str) -> float:
    """Time in ns that no correct kernel can be under; 0 for a chip whose data sheet is not known."""
    top = peak(chip, contract)
    if not top or not chip.dram_gbps:
        return 0.0
    return max(problem.min_bytes / chip.dram_gbps, arithmetic_floor(problem, chip, contract))


def arithmetic_floor(problem: ProblemDeclared, chip: Chip, contract: str) -> float:
    """Time in ns that the operations alone take at the peak; 0 where that is not known."""
    top = peak(chip, contract)
    return problem.flops / (top * 1000) if top else 0.0


def judge(
    outcome: str,
    inert: bool,
    samples: Samples | None,
    margin: float | None,
    floor_ns: float,
    statistics: Statistics,
    right: bool = True,
    witnesses: Witnesses | None = None,
    warm_ns: float = 0.0,
) -> Judgement:
    """The verdict of a round, by the numbered list of FORMAT.md 6.1. `floor_ns` is the physical floor, `warm_ns` that of warm calls;
    `right`: whether the outputs of the timed calls are, where bounds are set; `witnesses`: what a FASTER is then held against, None
    for a pair.
    """
    if outcome != "passed":
        return Judgement("AMBIGUOUS", f"gate: {outcome}")
    if inert:
        return Judgement("SAME", "inert", inert=True)
    if samples is None:
        return Judgement("AMBIGUOUS", None)
    found = interval(samples, statistics)
    if not right:
        return Judgement("AMBIGUOUS", WRONG_WHILE_TIMED, interval=found, margin=margin)
    wanted, cold = statistics.objective, bool(samples.blocks) and lower_median(samples.right()) < floor_ns
    if cold or beyond_peak(samples, statistics, warm_ns):
        return Judgement("AMBIGUOUS", "below physical floor", interval=found, margin=margin)
    if not isinstance(wanted, UnsetType) and samples.energy is None:
        return Judgement("AMBIGUOUS", NO_ENERGIES, interval=found, margin=margin)
    if found is None or len(samples.blocks) < statistics.blocks:
        return Judgement("AMBIGUOUS", TOO_FEW, interval=found, margin=margin)
    if margin is None:
        raise ValueError("the incumbent has no noise floor, so there is no margin")
    verdict, reason = _compare(found, margin)
    if verdict == "FASTER" and witnesses is not None and not isinstance(statistics.bounds, UnsetType):
        a, b = lower_median(samples.left()), lower_median(samples.right())
        against = doubt(statistics.bounds, a, b, found.lower, witnesses, wanted)
        if against is None and not isinstance(wanted, UnsetType):
            against = denied(wanted, samples)
        if against is not None:
            verdict, reason = "AMBIGUOUS", against
    return Judgement(verdict, reason, interval=found, margin=margin)


class Look(msgspec.Struct, frozen=True):
    """A judgement by looks, and what the page forbids of the way to it: where it ended, and at which it should have."""

    judgement: Judgement
    forbidden: tuple[str, ...] = ()


def looks(statistics: Statistics) -> tuple[Statistics, ...]:
    """What each look judges by: its number of blocks, and its share of the tail. Without looks, all at once."""
    if isinstance(statistics.looks, UnsetType) or not statistics.looks:
        return (statistics,)
    if len(statistics.looks) > MOST_LOOKS:
        raise ValueError(f"{len(statistics.looks)} looks, at most {MOST_LOOKS} are asked")
    den = statistics.tail_den * len(statistics.looks)
    return tuple(replace(statistics, blocks=blocks, tail_den=den, looks=UNSET) for blocks in statistics.looks)


def judge_by_looks(
    outcome: str,
    inert: bool,
    samples: Samples | None,
    margin: float | None,
    floor_ns: float,
    statistics: Statistics,
    limits: Limits | None = None,
    witnesses: Witnesses | None = None,
    warm_ns: float = 0.0,
) -> Look:
    """The verdict of the look at which the samples end, by FORMAT.md 6.1, and whether they may end there.

    `limits` are the contract's, which bounds ask of outputs. Raises ValueError where bounds are set without any.
    """
    every, asked = looks(statistics), asks(statistics, limits)
    right = samples is None or asked is None or outputs_right(samples, asked)
    if samples is None or outcome != "passed" or inert or isinstance(statistics.looks, UnsetType):
        return Look(judge(outcome, inert, samples, margin, floor_ns, every[-1], right, witnesses, warm_ns))
    n = len(samples.blocks)
    at = next((i for i, look in enumerate(every) if look.blocks >= n), len(every) - 1)
    found = judge(outcome, inert, samples, margin, floor_ns, every[at], right, witnesses, warm_ns)
    forbidden = [] if n == every[at].blocks else [f"{n} blocks, between the looks at {[s.blocks for s in every]}"]
    for look in every[:at]:
        so_far = asked is None or right_so_far(samples, look.blocks, asked)
        seen = first_blocks(samples, look.blocks)
        earlier = judge(outcome, inert, seen, margin, floor_ns, look, so_far, witnesses, warm_ns)
        if not undecided(earlier):
            forbidden.append(
                f"more samples after {earlier.verdict} ({earlier.reason}) at the look of {look.blocks} blocks"
            )
    if at < len(every) - 1 and undecided(found):
        forbidden.append(f"an end at the look of {every[at].blocks} blocks, {found.reason}")
    return Look(found, tuple(forbidden))


def first_blocks(samples: Samples, number: int) -> Samples:
    """The samples as they were after that many blocks."""
    energy = None if samples.energy is None else samples.energy[:number]
    return replace(samples, blocks=samples.blocks[:number], energy=energy)


def undecided(found: Judgement) -> bool:
    """Whether another look is due."""
    return found.verdict == "AMBIGUOUS" and found.reason in (STRADDLES, TOO_FEW)


def _compare(found: Interval, margin: float) -> tuple[Verdict, str]:
    if found.lower > 1 + margin:
        return "FASTER", "interval beyond margin"
    if found.upper < 1 / (1 + margin):
        return "SLOWER", "interval beyond margin"
    if found.lower >= 1 / (1 + margin) and found.upper <= 1 + margin:
        return "SAME", "interval within margin"
    return "AMBIGUOUS", STRADDLES
