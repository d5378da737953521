"""A gate's judgement by both sides on random reports: kinds with limits of their own, mixed signs with and without, every contract."""

from __future__ import annotations

import random

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.events.model import Limits
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report
from gpusolver.replay import derive_gate
from gpusolver.replay.artifacts import GateReport
from gpusolver.replay.registered import problem_demands

from ..profilers.examples import PROBLEM, draw, report

CONTRACTS = ("fp32-strict", "tf32-allowed")
KINDS = ("plain", "large", "small", "one_sign", "denormal", "mixed_signs")
STRIDES = (None, (3, 1), (3, 1), (3, 1), (1, 2), (0, 1))
SIZES = (0.0, 1e-6, 2e-6, 1e-4, 1e-3, 2e-3, 0.5)


def stated(drawn: random.Random) -> dict[str, Limits]:
    """Of one contract or of both."""
    return {
        contract: Limits(rel_l2=drawn.choice(SIZES[1:]), max_rms=drawn.choice((1e-5, 1e-2, 5.0)))
        for contract in drawn.sample(CONTRACTS, drawn.choice((1, 2, 2)))
    }


@pytest.mark.parametrize("seed", range(300))
def test_both_sides_say_the_same(seed: int) -> None:
    drawn = random.Random(seed)
    problem = replace(
        PROBLEM,
        limits={each: PROBLEM.limits[each] for each in CONTRACTS},
        mixed_limits=drawn.choice((UNSET, stated(drawn))),
        kind_limits=drawn.choice((UNSET, {kind: stated(drawn) for kind in drawn.sample(KINDS[1:5], 2)})),
    )
    eager = shapes.OutputErrors(nonfinite=0, rel_l2=drawn.choice(SIZES[:3]), max_rms=1e-6)
    draws = [
        draw(
            kind=kind,
            eager=None if kind == "plain" else eager,
            rel_l2=drawn.choice(SIZES),
            max_rms=1e-6,
            strides=drawn.choice(STRIDES),
        )
        for kind in ("plain", *drawn.sample(KINDS[1:], 3))
    ]
    asked = drawn.choice((None, None, *STRIDES))
    found = report(*draws, expected=shapes.Expected(shape=(2, 3), dtype="float32", strides=asked))
    contract = drawn.choice(CONTRACTS)
    other = msgspec.json.decode(msgspec.json.encode(found), type=GateReport)
    assert derive_gate.outcome(other, problem, contract) == judge_report(found, problem, contract)[0]


@pytest.mark.parametrize(
    ("rel_l2", "contract", "expected"),
    [
        (1e-2, "tf32-allowed", "passed"),
        (1.1e-2, "tf32-allowed", "wrong_result"),
        # Within what TF32 may be off on such inputs, ten times what it may on plain ones.
        (1e-2, "fp32-strict", "wrong_precision"),
        (1.1e-2, "fp32-strict", "wrong_result"),
    ],
)
def test_a_kind_is_judged_by_its_own_limits(rel_l2: float, contract: str, expected: str) -> None:
    """Limits of plain draws are 1e-6 and 1e-3."""
    own = {"fp32-strict": Limits(rel_l2=1e-6, max_rms=1.0), "tf32-allowed": Limits(rel_l2=1e-2, max_rms=1.0)}
    problem = replace(PROBLEM, kind_limits={"large": own})
    eager = shapes.OutputErrors(nonfinite=0, rel_l2=0.0, max_rms=0.0)
    for kind in ("large", "small"):
        found = report(draw(), draw(kind=kind, eager=eager, rel_l2=rel_l2, max_rms=0.0))
        due = expected if kind == "large" else "wrong_result"
        assert judge_report(found, problem, contract)[0] == due
        other = msgspec.json.decode(msgspec.json.encode(found), type=GateReport)
        assert derive_gate.outcome(other, problem, contract) == due


def test_what_a_registration_may_state_of_kinds() -> None:
    """No limits at all would be unfit at every gate; those that accept every answer, or are of no kind that is drawn, are no limits."""
    fair = {"tf32-allowed": Limits(rel_l2=0.5, max_rms=1.0)}
    loose = {"tf32-allowed": Limits(rel_l2=1.0, max_rms=1.0)}
    for mixed, kinds, faults in (
        (UNSET, UNSET, 0),
        (fair, {"large": fair}, 0),
        ({}, UNSET, 1),
        (UNSET, {"large": {}}, 1),
        (UNSET, {"plain": fair}, 1),
        (UNSET, {"large": loose}, 1),
        ({"fp16": fair["tf32-allowed"]}, UNSET, 1),
    ):
        problem = replace(PROBLEM, mixed_limits=mixed, kind_limits=kinds)
        assert sum(not held for *_, held in problem_demands(problem)) == faults, (mixed, kinds)
