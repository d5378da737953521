"""Both sides on the same energies: generated, at their bounds, and with every small mutation of either side, which must be noticed."""

from __future__ import annotations

import tempfile
import types
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gpusolver.events.model import Bounds, Heat, Objective, Stage, Statistics
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers import energies, verdicts, witnesses
from gpusolver.projections import objectives as after_the_fact
from gpusolver.replay import artifacts as read
from gpusolver.replay import bounds, objective, statistic
from gpusolver.replay.verify import verify

from .metered import ENERGY, HOT_LIES, THERMAL, MeteredWorld, forge_metered
from .test_mutations import Mutant, mutants, planted
from .world import CHIP, PROBLEM

NUMBER = st.integers(1, 10**12)
SCALE = st.floats(1e-6, 1e7)
BATCH = st.tuples(NUMBER, NUMBER, NUMBER)
BLOCKS = st.lists(st.tuples(BATCH, BATCH, BATCH, BATCH), min_size=1, max_size=4)
HEATS = st.builds(
    lambda rate, idle, stages: Heat(calls_per_s=rate, idle_w=idle, stages=tuple(Stage(k_per_w=r, tau_s=t) for r, t in stages)),
    SCALE, st.one_of(st.just(0.0), st.floats(0, 1e7)), st.lists(st.tuples(SCALE, SCALE), min_size=1, max_size=3),
)  # fmt: skip
Numbers = list[tuple[tuple[int, int, int], ...]]


def written(blocks: Numbers, times: tuple[int, int, int, int] = (9, 9, 9, 9)) -> shapes.Samples:
    """As the writing side holds them."""
    energy = tuple(tuple(shapes.Batch(millijoules=e, calls=n, milliseconds=t) for e, n, t in block) for block in blocks)
    return shapes.Samples(clock="cuda_event", cache="cold", blocks=(times,) * len(blocks), energy=energy)  # type: ignore[arg-type]


def reading(samples: shapes.Samples) -> read.Samples:
    """As the verifier reads what the writing side encodes."""
    return msgspec.json.decode(shapes.encode(samples), type=read.Samples)


@settings(max_examples=300, deadline=None)
@given(BLOCKS, st.one_of(st.none(), HEATS))
def test_generated_energies(blocks: Numbers, heat: Heat | None) -> None:
    """The same ratios to the last bit, and the same answer to whether the calls keep up, over all that may be registered and read."""
    wanted = Objective(by="energy", bound=2.0) if heat is None else Objective(by="thermal", bound=2.0, heat=heat)
    ours = written(blocks)
    theirs = reading(ours)
    assert tuple(energies.objective_ratios(ours, wanted)) == objective.ratios(theirs.energy, wanted)
    assert energies.keeps_up(ours, wanted) == (objective.denied(wanted, theirs) is None)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**4), st.floats(1, 1e4), st.floats(0, 200))
def test_a_rise_is_that_of_the_model_that_was_integrated(
    mj: int, calls: int, ms: int, rate: float, idle: float
) -> None:
    """projections/objectives.py has the same closed form in binary64, held there against a Runge-Kutta solution of its equation."""
    heat = Heat(calls_per_s=rate, idle_w=idle, stages=(Stage(k_per_w=0.02, tau_s=0.02), Stage(k_per_w=0.03, tau_s=2.0)))
    stages = [after_the_fact.Stage(k_per_w=stage.k_per_w, tau_s=stage.tau_s) for stage in heat.stages]
    on_s, watts = min(1 / rate, ms / (1000 * calls)), max(idle, mj / ms)
    due = after_the_fact.rise(stages, idle, watts, on_s, 1 / rate)
    found = energies.rise(heat, shapes.Batch(millijoules=mj, calls=calls, milliseconds=ms))
    assert float(found) == pytest.approx(due, rel=1e-6, abs=1e-9)


def test_rises_by_hand() -> None:
    """0.1 K/W. On all the time at 400 W: 40 K, however long tau is. A period far under tau: the mean power, 0.25 * 400 + 0.75 * 40 W, 13 K.
    A period far over tau: the call's own power at its end, 40 K. A kernel that draws less than idle: idle all the time, 4 K.
    """

    def rise(rate: float, tau: float, millijoules: int, calls: int, ms: int) -> float:
        heat = Heat(calls_per_s=rate, idle_w=40.0, stages=(Stage(k_per_w=0.1, tau_s=tau),))
        return float(energies.rise(heat, shapes.Batch(millijoules=millijoules, calls=calls, milliseconds=ms)))

    assert rise(1000.0, 2.0, 400_000, 1000, 1000) == pytest.approx(40.0, rel=1e-12)
    assert rise(5000.0, 2.0, 400_000, 1000, 1000) == pytest.approx(40.0, rel=1e-12)  # cannot keep up: on all the time
    assert rise(250.0, 1e4, 400_000, 1000, 1000) == pytest.approx(13.0, rel=1e-6)
    assert rise(0.25, 1e-3, 400_000, 1, 1000) == pytest.approx(40.0, rel=1e-12)
    assert rise(250.0, 2.0, 30_000, 1000, 1000) == pytest.approx(4.0, rel=1e-12)


def test_energies_by_hand() -> None:
    """A: 600 mJ for 5 calls, 120 each; B: 500 mJ for 10, 50 each; one batch's calls weigh as much as another's."""
    ours = written([((400, 3, 1), (100, 4, 1), (400, 6, 1), (200, 2, 1))])
    assert energies.objective_ratios(ours, ENERGY) == [2.4]
    assert objective.ratios(reading(ours).energy, ENERGY) == (2.4,)


WORLDS = st.builds(
    MeteredWorld,
    st.sampled_from(("", *HOT_LIES)), st.integers(0, 10**6), st.sampled_from((100, 600, 990, 1010, 3000)), st.sampled_from((3, 50, 1000)),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    WORLDS,
    st.sampled_from((ENERGY, THERMAL)),
    st.sampled_from((1.0, 2.0, 100.0)),
    st.sampled_from((None, (8,), (6, 8), (4, 6, 8))),
)
def test_generated_runs_are_clean(
    world: MeteredWorld, wanted: Objective, bound: float, looks: tuple[int, ...] | None
) -> None:
    """Powers about those at which tiles win or lose, meters from quiet to loud, every lie: no value of any run that the sides disagree on."""
    with tempfile.TemporaryDirectory() as folder:
        path = forge_metered(Path(folder) / "ledger.db", replace(wanted, bound=bound), looks=looks, world=world)
        told = {f.kind for f in verify(path, True).findings}
    # A candidate that wins at an early look, and whose outputs are wrong later, is found in the comparisons after the rounds.
    assert told <= ({"head to head"} if world.lie == "wrong pair" else set())


# --- at the bounds, and with mutations ---

_BOUNDS = Bounds(alone=0.25, wall_slack_ns=1000, busy=0.5)
_PLAIN = Statistics(blocks=8, tail_num=1, tail_den=20, margin=0.1, floor_multiple=0.0, bounds=_BOUNDS)
_RATE = Objective(
    by="thermal", bound=2.0, heat=Heat(calls_per_s=1000.0, idle_w=50.0, stages=(Stage(k_per_w=0.1, tau_s=0.001),))
)
KINDS: tuple[Objective | UnsetType, ...] = (UNSET, ENERGY, _RATE)
_RIGHT = shapes.OutputErrors(rel_l2=1e-4, max_rms=1e-3, nonfinite=0)
_FLOOR_NS = 2 * 512**3 / (80.0 * 1000)
"""3355.4 ns: the arithmetic of the made-up problem at its chip's TF32 peak."""
_ENERGIES: tuple[Any, ...] = (
    None,
    ((900, 3, 3), (400, 3, 3), (500, 3, 3), (800, 3, 3)),  # keeps up exactly with 1000 calls a second
    ((900, 3, 3), (400, 3, 4), (500, 3, 3), (800, 3, 3)),  # does not
    ((900, 3, 2), (800, 2, 1), (950, 2, 1), (700, 1, 1)),
    ((900, 300_000, 900), (400, 150_000, 503), (500, 150_001, 503), (800, 300_000, 900)),  # 3353 ns a call
    ((900, 300_000, 900), (400, 150_000, 504), (500, 150_000, 503), (800, 300_000, 900)),  # 3357 ns
    ((900, 300_000, 900), (400, 5 * 10**9, 16_777_216), (500, 5 * 10**9, 16_777_216), (800, 300_000, 900)),  # 3355.4432
    ((900, 300_000, 900), (400, 5 * 10**9, 16_777_216), (500, 5 * 10**9, 16_777_215), (800, 300_000, 900)),  # a hair less
    ((900_000, 500, 500), (90_000, 500, 500), (90_000, 500, 501), (900_000, 500, 500)),  # 1001 ms for 1000 calls
    ((500, 3, 3), (500, 3, 3), (500, 3, 3), (500, 3, 3)),
    ((30, 3, 3), (90, 3, 3), (20, 3, 3), (90, 3, 3)),  # A as idle as it gets, or less
)  # fmt: skip
_TIMES = (
    (200_000, 100_000, 100_000, 200_000),
    (100_000, 100_000, 100_000, 100_000),
    (200_000, 320_000, 320_000, 200_000),
    (125_000, 100_000, 100_000, 125_000),
    (200_000, 100_000, 150_000, 200_000),  # 1.6
)
_SEEN: tuple[dict[str, Any], ...] = tuple(
    dict(zip(("alone", "fastest", "wall_a", "wall_b", "active"), row, strict=True))
    for row in (
        (160_000, 160_000, 300_000.0, 300_000.0, 200_000.0),
        (160_000, 159_999, 300_000.0, 420_000.0, 200_000.0),
        (159_999, 50_000, 300_000.0, 300_000.0, 200_000.0),
        (100_000, 49_999, None, 300_000.0, 200_000.0),
        (300_000, 50_000, 201_000.0, 102_000.0, None),
        (300_000, 50_000, 201_000.0, 102_001.0, None),
        (300_000, 50_000, 201_000.0, 202_001.0, None),
        (300_000, 160_000, 201_000.0, 322_000.0, None),
        (300_000, 160_000, 201_000.0, 322_001.0, None),
        (300_000, 160_000, 150_000.0, 101_000.0, 200_000.0),
        (300_000, 160_000, 150_000.0, 101_001.0, 200_000.0),
        (300_000, 160_000, 200_000.0, 101_000.0, 200_001.0),
        (100_000, 100_000, 300_000.0, None, 200_000.0),
        (320_000, 320_000, 300_000.0, 300_000.0, 200_000.0),
        (100_000, 100_000, 300_000.0, 300_000.0, 200_000.0),
        (300_000, 160_000, 176_000.0, 110_000.0, 200_000.0),  # 176,000 = 1.6 * 110,000
    )
)  # fmt: skip


def judged(
    kind: Objective | UnsetType, energy: Any, times: tuple[int, int, int, int], seen: dict[str, Any]
) -> tuple[Any, Any]:
    """(writing side's, verifier's) verdict, reason and interval of a candidate that passed."""
    samples = written([energy or ((1, 1, 1),) * 4] * 8, times)
    outputs = shapes.TimedOutputs(pairs=(_RIGHT,) * 16, ends=((_RIGHT, _RIGHT),))
    samples = replace(samples, energy=None if energy is None else samples.energy, outputs=outputs)
    statistics = replace(_PLAIN, objective=kind)
    ours = verdicts.judge(
        outcome="passed", inert=False, samples=samples, problem=PROBLEM, contract="tf32-allowed", chip=CHIP, statistics=statistics,
        noise_floor=0.0, witnesses=witnesses.Witnesses(
            alone=seen["alone"], fastest=seen["fastest"], walls=(seen["wall_a"], seen["wall_b"]), busy=seen["active"],
        ),
    )  # fmt: skip
    theirs = statistic.judge_by_looks(
        "passed", False, reading(samples), margin=0.1, floor_ns=statistic.physical_floor(PROBLEM, CHIP, "tf32-allowed"),
        statistics=statistics, limits=PROBLEM.limits["tf32-allowed"], witnesses=bounds.Witnesses(**seen),
        warm_ns=statistic.arithmetic_floor(PROBLEM, CHIP, "tf32-allowed"),
    ).judgement  # fmt: skip
    return (ours.verdict, ours.reason, ours.interval), (theirs.verdict, theirs.reason, theirs.interval)


def everything() -> Iterator[tuple[Any, Any]]:
    """All energies with sound witnesses, all witnesses with energies that win. Intervals of equal blocks are remembered by the verifier,
    and must not outlive a mutation.
    """
    statistic._interval.cache_clear()
    for kind in reversed(KINDS):
        yield from (judged(kind, *case) for case in product(_ENERGIES, _TIMES, _SEEN[:1]))
        yield from (judged(kind, *case) for case in product(_ENERGIES[1:2], _TIMES, _SEEN))


def apart() -> bool:
    """Whether the sides disagree on something; a side that its own mutation breaks off is noticed, too."""
    try:
        return any(ours != theirs for ours, theirs in everything())
    except Exception:  # noqa: BLE001 - a mutant may raise anything
        return True
    finally:
        statistic._interval.cache_clear()


def test_the_sides_agree_and_every_reason_is_among_the_cases() -> None:
    found = list(everything())
    assert all(ours == theirs for ours, theirs in found)
    assert {reason for (_, reason, _), _ in found} >= {
        "no energies", "below physical floor", "over the latency bound", "too slow for the call rate", "no wall clock",
        "the wall clock does not confirm it", "the counters do not confirm it", "not faster than the incumbent alone",
        "the incumbent was slower beside the candidate than alone", "interval beyond margin", "interval within margin",
    }  # fmt: skip


EQUIVALENT: set[str] = set()
"""Mutations that change nothing, each with its reason."""
SIDES = {
    "writing": (
        (energies, ("added", "sides", "energy_ratio", "rise", "heat_ratio", "objective_ratios", "warm_b", "keeps_up")),
        (witnesses, ("doubt", "_unfit")),
        (verdicts, ("_too_many",)),
    ),
    "verifying": (
        (objective, ("ratios", "_total", "peak_rise", "_stage", "warm_right", "denied", "beyond_peak")),
        (bounds, ("doubt",)),
        (statistic, ("arithmetic_floor",)),
    ),
}
CASES = [
    pytest.param(module, mutant, id=f"{side}-{index}-{mutant.where}")
    for side, parts in SIDES.items()
    for module, names in parts
    for index, mutant in enumerate(mutants(module, *names))
    if mutant.where not in EQUIVALENT
]


@pytest.mark.parametrize(("module", "mutant"), CASES)
def test_a_mutation_is_noticed(module: types.ModuleType, mutant: Mutant) -> None:
    with planted(module, mutant):
        assert apart(), mutant.where


@pytest.mark.parametrize(
    ("module", "name"), [(energies, "energy_ratio"), (objective, "ratios"), (energies, "rise"), (objective, "_stage")]
)
def test_a_mutation_is_noticed_in_a_ledger(tmp_path: Path, module: types.ModuleType, name: str) -> None:
    """The same by `replay --verify`, of a ledger that the mutated (or the sound) side wrote, where it comes to a ledger at all."""
    wanted = ENERGY if name in ("energy_ratio", "ratios") else THERMAL
    told = [
        findings for m in mutants(module, name) if (findings := findings_with(module, m, wanted, tmp_path)) is not None
    ]
    assert told.count(True) >= 2


def findings_with(module: types.ModuleType, mutant: Mutant, wanted: Objective, folder: Path) -> bool | None:
    """Whether the ledger is found out; None where the mutation breaks something off."""
    statistic._interval.cache_clear()
    path = folder / f"{len(list(folder.iterdir()))}.db"
    with planted(module, mutant):
        try:
            return bool(verify(forge_metered(path, wanted), True).findings)
        except Exception:  # noqa: BLE001 - a mutant may raise anything
            return None
        finally:
            statistic._interval.cache_clear()
