"""What bounds ask of a FASTER, and the gate's later calls and other draws (FORMAT.md 6.1, 6.2), on numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.events.model import (
    Bounds,
    Cell,
    Interval,
    KernelGated,
    Limits,
    NoiseFloorMeasured,
    RoundAttempted,
    Statistics,
)
from gpusolver.replay import bounds, derive_gate, statistic
from gpusolver.replay.artifacts import (
    Counters,
    Draw,
    Errors,
    Expected,
    GateReport,
    OutputErrors,
    Outputs,
    Samples,
    Wall,
)
from gpusolver.replay.calibration import Calibration, Copy, DeviceLimits
from gpusolver.replay.grammar import Round
from gpusolver.replay.state import State

from .world import PROBLEM

BOUNDS = Bounds(alone=0.25, wall_slack_ns=1000, busy=0.5)
STATISTICS = Statistics(blocks=6, tail_num=1, tail_den=20, margin=0.1, floor_multiple=0.0, bounds=BOUNDS)
LIMITS = Limits(rel_l2=1e-3, max_rms=1e-2)
GOOD = OutputErrors(1e-3, 1e-2, 0)
APART = OutputErrors(2e-3, 2e-2, 0)
"""Each at its limit: an output against the reference, and two outputs against each other."""
SOUND = bounds.Witnesses(alone=1600, wall_a=3000.0, wall_b=3000.0, active=2000.0)
"""Beside a = 2000 and b = 1000 each number stands exactly at its bound: 1.25 * 1600, 1000 + 1000 + 1000, 0.5 * 2000."""


def samples(a: int = 2000, b: int = 1000, blocks: int = 6, outputs: Outputs | None = None) -> Samples:
    """Equal blocks; right outputs where none are given."""
    right = Outputs(pairs=(APART,) * (2 * blocks), ends=((GOOD, GOOD),))
    return Samples("cuda_event", "cold", "ns", ((a, b, b, a),) * blocks, outputs=outputs or right)


def judged(given: Samples, witnesses: bounds.Witnesses | None = SOUND, **more: Any) -> tuple[str, str | None]:
    """Verdict and reason of a candidate that passed."""
    fields: dict[str, Any] = {"floor_ns": 0.0, "statistics": STATISTICS, "limits": LIMITS, "margin": 0.1}
    found = statistic.judge_by_looks("passed", False, given, witnesses=witnesses, **(fields | more)).judgement
    assert found.interval is not None and found.margin == 0.1
    return found.verdict, found.reason


def seen(**fields: Any) -> bounds.Witnesses:
    return replace(SOUND, **fields)


FASTER = ("FASTER", "interval beyond margin")


@pytest.mark.parametrize(
    ("witnesses", "reason"),
    [
        (SOUND, None),
        (seen(wall_a=None), "no wall clock"),
        (seen(wall_b=None), "no wall clock"),
        (seen(wall_b=None, alone=1), "no wall clock"),
        (seen(alone=1599), "the incumbent was slower beside the candidate than alone"),  # 2000 > 1998.75
        (seen(alone=1599, wall_b=9000.0), "the incumbent was slower beside the candidate than alone"),
        (seen(wall_b=3001.0), "the wall clock does not confirm it"),  # 2001 > 1000 + 1000, 3000 < 2 * 3001
        (seen(wall_b=3001.0, active=9000.0), "the wall clock does not confirm it"),
        (seen(wall_a=2500.0, wall_b=2500.0), None),  # 1500 beyond the GPU time, 500 + 1000 allowed
        (seen(wall_a=1500.0, wall_b=2000.0), None),  # an incumbent's wall below its GPU time takes nothing away
        (seen(wall_a=1500.0, wall_b=2000.5), "the wall clock does not confirm it"),
        (seen(active=2001.0), "the counters do not confirm it"),  # 1000 < 1000.5
        (seen(active=None), None),
    ],
)
def test_what_a_faster_is_held_against(witnesses: bounds.Witnesses, reason: str | None) -> None:
    """Both sides of each bound, and which reason goes first."""
    assert judged(samples(), witnesses) == (FASTER if reason is None else ("AMBIGUOUS", reason))


@pytest.mark.parametrize(("alone", "reason"), [(1001, None), (1000, "not faster than the incumbent alone")])
def test_a_candidate_no_faster_than_the_incumbent_alone(alone: int, reason: str | None) -> None:
    """1250 beside 1000 is no more than a quarter over 1000, and 1000 ns is not under 1000 ns; it goes before the wall clock."""
    witnesses = bounds.Witnesses(alone=alone, wall_a=1250.0, wall_b=1250.0 if reason is None else 9e9, active=None)
    assert judged(samples(1250, 1000), witnesses) == (FASTER if reason is None else ("AMBIGUOUS", reason))


@pytest.mark.parametrize(("wall_b", "denied"), [(1000.0, False), (1300.0, False), (1333.0, False), (1334.0, True)])
def test_a_wall_clock_that_confirms_the_interval(wall_b: float, denied: bool) -> None:
    """Beyond the GPU time and still 2000 / 1333 >= 1.5, the lower bound: confirmed. 1.5 * 1334 = 2001 > 2000 is not."""
    strict = Bounds(alone=9.0, wall_slack_ns=0, busy=1.0)
    found = bounds.doubt(
        strict, 2000, 1000, 1.5, bounds.Witnesses(alone=2000, wall_a=2000.0, wall_b=wall_b, active=None)
    )
    assert found == ("the wall clock does not confirm it" if denied else None)


def test_who_is_not_held_against_them() -> None:
    """A pair, a run without bounds, and what is not faster anyhow."""
    nothing = bounds.Witnesses(alone=1, wall_a=None, wall_b=None, active=9e9)
    assert judged(samples(), None) == FASTER
    assert judged(samples(), nothing, statistics=replace(STATISTICS, bounds=UNSET)) == FASTER
    assert judged(samples(1000, 2000), nothing) == ("SLOWER", "interval beyond margin")
    assert judged(samples(1000, 1000), nothing) == ("SAME", "interval within margin")


def test_wall_and_cycles() -> None:
    """48,000 ns of 16 calls; 4000 cycles at 2000 MHz are 2000 ns. Absent where the report, the metric or the limits are."""
    watched = GateReport(wall=Wall(16, 48_000, (GOOD,)))
    assert (bounds.wall(watched), bounds.wall(GateReport()), bounds.wall(None)) == (3000.0, None, None)
    limits = DeviceLimits(4, 64, 32, 65536, 233_472, 1024, 2000)
    known, unknown = Calibration(Copy(1, (1,)), limits=limits), Calibration(Copy(1, (1,)))
    counted = Counters("made-up", "TOY1", {"sm__cycles_active.avg": 4000})
    assert bounds.active(counted, known) == 2000.0
    assert bounds.active(counted, unknown) is None
    assert bounds.active(Counters("made-up", "TOY1", {"sm__cycles_active.avg": None}), known) is None
    assert bounds.active(Counters("none", "", {}), known) is None
    assert bounds.active(None, known) is None


CELL = Cell(problem="toy", contract="tf32-allowed", pool="full", arm="on", repetition=1)


def a_round(number: int, outcome: str, report: str, samples: str | None = None) -> Round:
    """A round of the source `kernel`: its gate, and a noise floor where samples are given."""
    gated = KernelGated(
        cell=CELL, round=number, attempt=1, source="kernel", outcome=outcome, reason="", report=report, launches=None
    )
    interval = Interval(lower=1.0, median=1.0, upper=1.0, blocks=6, rank=1)
    floor = None
    if samples is not None:
        floor = NoiseFloorMeasured(
            cell=CELL, round=number, source="kernel", samples=samples, interval=interval, floor=0.0
        )
    attempted = RoundAttempted(cell=CELL, round=number, attempt=1, incumbent="start")
    return Round(attempted=attempted, seqs={}, gated=gated, floor=floor)


def test_the_latest_gate_that_passed_and_the_latest_noise_floor() -> None:
    """By source; a gate that failed leaves the one before, and this round's own is later than any before it."""
    state = State()
    state.remember(a_round(1, "passed", "first", "alone at first"))
    state.remember(a_round(2, "passed", "second", "alone again"))
    state.remember(a_round(3, "timeout", "third"))
    now = a_round(4, "passed", "fourth").gated
    assert now is not None
    other = replace(now, source="candidate")
    assert state.alone == {"kernel": "alone again"}
    assert (state.report("kernel", other), state.report("candidate", other)) == ("second", "fourth")
    assert (state.report("kernel", now), state.report("start", now)) == ("fourth", None)


# --- outputs while timed ---

OVER, OVER_RMS = OutputErrors(1.001e-3, 0.0, 0), OutputErrors(0.0, 1.001e-2, 0)
FAR, FAR_RMS = OutputErrors(2.001e-3, 0.0, 0), OutputErrors(0.0, 2.001e-2, 0)
BAD = [OutputErrors(0.0, 0.0, 1), OutputErrors(None, 0.0, 0), OutputErrors(0.0, None, 0)]
WRONG = [
    *(Outputs(pairs=(APART,) * 11 + (bad,), ends=((GOOD, GOOD),)) for bad in (*BAD, FAR, FAR_RMS)),
    *(Outputs(pairs=(APART,) * 12, ends=((GOOD, GOOD), (bad, GOOD))) for bad in (*BAD, OVER, OVER_RMS)),
    *(Outputs(pairs=(APART,) * 12, ends=((GOOD, bad), (GOOD, GOOD))) for bad in (*BAD, OVER, OVER_RMS)),
    Outputs(pairs=(), ends=((GOOD, GOOD),)),
    Outputs(pairs=(APART,) * 12, ends=()),
    Outputs(),
]


@pytest.mark.parametrize("outputs", WRONG)
def test_wrong_while_timed(outputs: Outputs) -> None:
    """One output that is not right, or none at all, in a round and in a pair, before the physical floor is asked."""
    wrong = ("AMBIGUOUS", "wrong while timed")
    assert judged(samples(outputs=outputs)) == wrong
    assert judged(samples(1000, 2000, outputs=outputs), None, floor_ns=1e9) == wrong
    assert judged(samples(outputs=outputs), statistics=replace(STATISTICS, bounds=UNSET)) == FASTER


def test_outputs_that_were_not_looked_at() -> None:
    """Absent is wrong; and a gate that failed, an inert candidate and one without samples go before."""
    bare = Samples("cuda_event", "cold", "ns", ((2000, 1000, 1000, 2000),) * 6)
    assert judged(bare) == ("AMBIGUOUS", "wrong while timed")
    for outcome, inert, given, reason in (
        ("timeout", False, bare, "gate: timeout"),
        ("passed", True, bare, "inert"),
        ("passed", False, None, None),
    ):
        found = statistic.judge_by_looks(outcome, inert, given, 0.1, 0.0, STATISTICS, LIMITS, SOUND).judgement
        assert found.reason == reason


def test_limits_that_nobody_knows() -> None:
    """Bounds cannot be asked without the contract's limits."""
    with pytest.raises(ValueError, match="no limits"):
        statistic.judge_by_looks("passed", False, samples(), 0.1, 0.0, STATISTICS)


LOOKS = replace(STATISTICS, blocks=12, margin=0.25, looks=(4, 8, 12))


def looked(fast: int, same: int, outputs: Outputs, witnesses: bounds.Witnesses | None = SOUND) -> statistic.Look:
    """Blocks of 2000 against 1000, then equal ones: with 12 in all, the first two looks straddle where there are six of the former."""
    rows = ((2000, 1000, 1000, 2000),) * fast + ((1000, 1000, 1000, 1000),) * same
    given = Samples("cuda_event", "cold", "ns", rows, outputs=outputs)
    return statistic.judge_by_looks("passed", False, given, 0.25, 0.0, LOOKS, LIMITS, witnesses)


def outputs_with(far: int | None, blocks: int, end: OutputErrors = GOOD) -> Outputs:
    """Right outputs, but for the pair at one place."""
    pairs = tuple(FAR if i == far else APART for i in range(2 * blocks))
    return Outputs(pairs=pairs, ends=((GOOD, GOOD), (GOOD, end)))


@pytest.mark.parametrize(
    ("fast", "same", "outputs", "allowed"),
    [
        (4, 0, outputs_with(7, 4), True),  # the first look, and it ends there
        (6, 6, outputs_with(7, 12), False),  # it goes on after a wrong output of the first four blocks
        (6, 6, outputs_with(8, 12), False),  # of the fifth, which the second look has
        (6, 6, outputs_with(16, 12), True),  # of the ninth, which only the last look has
        (6, 6, outputs_with(None, 12, OVER), True),  # which end was there at which look is not known
        (6, 6, Outputs(), False),  # none at any look
    ],
)
def test_wrong_outputs_by_looks(fast: int, same: int, outputs: Outputs, allowed: bool) -> None:
    """An output that is not right ends a round at the first look that saw it."""
    due = looked(fast, same, outputs)
    assert due.judgement.reason == "wrong while timed"
    assert (due.forbidden == ()) is allowed


def test_a_doubted_faster_ends_at_its_look() -> None:
    """Doubt is no reason to go on measuring."""
    crowded = seen(alone=1500)
    due = looked(8, 0, outputs_with(None, 8), crowded)
    assert due.forbidden == ()
    assert due.judgement.reason == "the incumbent was slower beside the candidate than alone"
    assert any(
        "more samples after AMBIGUOUS" in said for said in looked(12, 0, outputs_with(None, 12), crowded).forbidden
    )


# --- the gate ---

PLAIN = Draw(
    rel_l2=1e-6,
    max_rms=1e-5,
    shape=(2,),
    dtype="float32",
    device_ok=True,
    type_ok=True,
    inputs_unchanged=True,
    nonfinite=0,
)
"""At the limits of `fp32-strict`; those of `tf32-allowed` are a thousand times wider."""
STRICT, LOOSE = OutputErrors(1e-6, 1e-5, 0), OutputErrors(1e-3, 1e-2, 0)
EAGER = OutputErrors(2.0**-12, 2.0**-10, 0)
"""Eight times: 2^-9 = 1.95e-3 and 2^-7 = 7.8e-3."""


def outcome(contract: str = "tf32-allowed", *draws: Draw, **more: Any) -> str:
    """Of a plain draw, these, and what else is in the report."""
    fields: dict[str, Any] = {
        "draws": (PLAIN, *draws),
        "expected": Expected((2,), "float32"),
        "trivial": {"zeros": Errors(1.0, 4.0)},
    }
    return derive_gate.outcome(GateReport(**(fields | more)), PROBLEM, contract)


def kind(rel_l2: float | None, max_rms: float | None, eager: OutputErrors | None = EAGER, **more: Any) -> Draw:
    """A draw of large inputs."""
    return replace(PLAIN, **({"rel_l2": rel_l2, "max_rms": max_rms, "kind": "large", "eager": eager} | more))


WRONG_CALLS = [OutputErrors(0.0, 0.0, 1), OutputErrors(None, 0.0, 0), OVER, OVER_RMS]


@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_later_calls(wrong: OutputErrors) -> None:
    """Of a repeat, then of a call by the watch; a draw that is wrong goes before both."""
    assert outcome(repeats=(LOOSE, LOOSE), wall=Wall(2, 9, (LOOSE, LOOSE))) == "passed"
    assert outcome(repeats=(LOOSE, wrong), wall=Wall(2, 9, (wrong,))) == "nondeterministic"
    assert outcome(repeats=(LOOSE,), wall=Wall(2, 9, (LOOSE, wrong))) == "wrong_later"
    assert outcome("tf32-allowed", replace(PLAIN, rel_l2=0.5), repeats=(wrong,)) == "wrong_result"


def test_later_calls_have_the_limits_of_the_contract() -> None:
    """An error that tf32 may make is no `wrong_precision` in a later call."""
    assert outcome("fp32-strict", repeats=(STRICT,), wall=Wall(1, 9, (STRICT,))) == "passed"
    assert outcome("fp32-strict", repeats=(LOOSE,)) == "nondeterministic"
    assert outcome("fp32-strict", wall=Wall(1, 9, (LOOSE,))) == "wrong_later"


@pytest.mark.parametrize(
    ("draw", "contract", "expected"),
    [
        (kind(2.0**-9, 1e-2), "tf32-allowed", "passed"),  # 8 * eager's rel_l2, the contract's max_rms
        (kind(2.0**-8, 0.0), "tf32-allowed", "wrong_result"),
        (kind(0.0, 1.01e-2), "tf32-allowed", "wrong_result"),
        (kind(0.0, 2.0**-6, OutputErrors(0.0, 2.0**-9, 0)), "tf32-allowed", "passed"),
        (kind(1e-3, 1e-2, OutputErrors(0.0, 0.0, 0)), "tf32-allowed", "passed"),  # an exact eager form narrows nothing
        (kind(2.0**-9, 2.0**-7), "fp32-strict", "passed"),
        (kind(2.0**-9, 1e-2), "fp32-strict", "wrong_precision"),  # max_rms over 2^-7, within tf32-allowed's
        (kind(2.0**-8, 0.0), "fp32-strict", "wrong_result"),
        (kind(None, 0.0), "tf32-allowed", "wrong_result"),
        (kind(0.0, 0.0, nonfinite=1), "tf32-allowed", "nonfinite"),
        (kind(0.0, 0.0, inputs_unchanged=False), "tf32-allowed", "inputs_changed"),
        (kind(0.0, 0.0, dtype="float16"), "tf32-allowed", "wrong_type"),
        # not asked: eager is not there, or does not bear these inputs itself
        (kind(9.0, 9.0, None, nonfinite=3), "tf32-allowed", "passed"),
        (kind(9.0, 9.0, OutputErrors(0.0, 0.0, 1), inputs_unchanged=False), "tf32-allowed", "passed"),
        (kind(9.0, 9.0, OutputErrors(None, 0.0, 0)), "tf32-allowed", "passed"),
        (kind(9.0, 9.0, OutputErrors(0.0, None, 0)), "tf32-allowed", "passed"),
        # a plain draw is asked by the contract alone, whatever eager makes of it
        (kind(2.0**-9, 0.0, kind="plain"), "tf32-allowed", "wrong_result"),
        (kind(9.0, 9.0, None, kind="plain"), "tf32-allowed", "wrong_result"),
    ],
)
def test_draws_of_other_kinds(draw: Draw, contract: str, expected: str) -> None:
    """With and without an eager form that bears the inputs."""
    assert outcome(contract, draw) == expected


@pytest.mark.parametrize(
    ("rel_l2", "contract", "expected"),
    [
        (1e-4, "fp32-strict", "passed"),
        (1.1e-4, "fp32-strict", "wrong_precision"),
        (0.1, "tf32-allowed", "passed"),
        (0.11, "fp32-strict", "wrong_result"),
        (0.11, "tf32-allowed", "wrong_result"),
        (0.0, "bf16-allowed", "unfit_problem"),
    ],
)
def test_draws_of_mixed_signs(rel_l2: float, contract: str, expected: str) -> None:
    """By limits of their own; a contract that these lack cannot be judged on."""
    stated = {"fp32-strict": Limits(rel_l2=1e-4, max_rms=9.0), "tf32-allowed": Limits(rel_l2=0.1, max_rms=9.0)}
    limits = PROBLEM.limits | {"bf16-allowed": Limits(rel_l2=0.5, max_rms=9.0)}
    problem = replace(PROBLEM, mixed_limits=stated, limits=limits)
    draw = kind(rel_l2, 0.0, OutputErrors(0.0, 0.0, 0), kind="mixed_signs")
    report = GateReport(draws=(PLAIN, draw), expected=Expected((2,), "float32"), trivial={"zeros": Errors(1.0, 4.0)})
    assert derive_gate.outcome(report, problem, contract) == expected


def test_draws_of_mixed_signs_are_there_where_limits_are_stated_and_only_there() -> None:
    stated = {"tf32-allowed": Limits(rel_l2=0.1, max_rms=9.0)}
    mixed = replace(PLAIN, kind="mixed_signs", eager=EAGER)
    for limits, draws, fits in (
        (stated, (PLAIN, mixed), True),
        (stated, (PLAIN,), False),
        (UNSET, (PLAIN, mixed), False),
        (UNSET, (PLAIN,), True),
    ):
        report = GateReport(draws=draws, expected=Expected((2,), "float32"), trivial={"zeros": Errors(1.0, 4.0)})
        said = [m for m in derive_gate.misfits(report, replace(PROBLEM, mixed_limits=limits), False) if "signs" in m]
        assert (said == []) is fits


@pytest.mark.parametrize("name", ["plain", "large", "small", "one_sign", "denormal", "mixed_signs"])
def test_kinds_of_the_page(name: str) -> None:
    """As JSON, with eager null; an older draw has neither key."""
    raw: dict[str, Any] = msgspec.to_builtins(PLAIN)
    assert msgspec.convert(raw | {"kind": name, "eager": None}, Draw) == replace(PLAIN, kind=name)
    del raw["kind"], raw["eager"]
    assert msgspec.convert(raw, Draw) == PLAIN


@pytest.mark.parametrize(
    ("shape", "content"),
    [
        (Wall, {"calls": 0, "ns": 1, "outputs": [msgspec.to_builtins(GOOD)]}),
        (Wall, {"calls": 1, "ns": 0, "outputs": [msgspec.to_builtins(GOOD)]}),
        (Wall, {"calls": 1, "ns": 1.5, "outputs": [msgspec.to_builtins(GOOD)]}),
        (Wall, {"calls": 1, "ns": 1, "outputs": []}),
        (OutputErrors, {"nonfinite": -1, "rel_l2": 0.0, "max_rms": 0.0}),
        (OutputErrors, {"nonfinite": 0, "rel_l2": -1.0, "max_rms": 0.0}),
        (OutputErrors, {"rel_l2": 0.0, "max_rms": 0.0}),
        (Outputs, {"pairs": [], "ends": [[msgspec.to_builtins(GOOD)]]}),
        (Draw, msgspec.to_builtins(PLAIN) | {"kind": "odd"}),
    ],
)
def test_shapes_that_no_artifact_has(shape: Any, content: dict[str, Any]) -> None:
    """No time of 0, no negative error, a reference for both sides of an end, no kind that the page does not know."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, shape)
