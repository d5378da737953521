"""Gate outcomes: one report per branch, and the order of the branches."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Limits
from gpusolver.profilers.artifacts import Errors, Expected, OutputErrors, ReportError
from gpusolver.profilers.gates import gate_seed, judge_report
from gpusolver.replay import derive_gate
from gpusolver.replay.artifacts import GateReport

from .examples import PROBLEM, draw, report

# Wider than those of plain draws (1e-6 and 1e-3), as of a product of positive numbers.
MIXED_LIMITS = {"fp32-strict": Limits(rel_l2=1e-5, max_rms=1.0), "tf32-allowed": Limits(rel_l2=1e-2, max_rms=1.0)}
MIXED_SIGNS = [
    (1e-5, "fp32-strict", "passed"),
    (1.1e-5, "fp32-strict", "wrong_precision"),
    (1e-2, "fp32-strict", "wrong_precision"),
    (1.1e-2, "fp32-strict", "wrong_result"),
    (1e-2, "tf32-allowed", "passed"),
    (1.1e-2, "tf32-allowed", "wrong_result"),
]


def outcome(found: Any, contract: str = "fp32-strict") -> str:
    return judge_report(found, PROBLEM, contract)[0]


def test_passed() -> None:
    assert judge_report(report(draw(), draw()), PROBLEM, "fp32-strict") == ("passed", "within limits")


@pytest.mark.parametrize(
    ("shape", "asked", "found", "expected"),
    [
        ((2, 3), (3, 1), (3, 1), "passed"),
        ((2, 3), (1, 2), (1, 2), "passed"),  # PyTorch's own answer lies by columns
        ((2, 3), (1, 2), (3, 1), "passed"),  # by rows is always right
        ((2, 3), (3, 1), (1, 2), "wrong_type"),
        ((2, 3), (3, 1), (6, 2), "wrong_type"),
        ((2, 3), (3, 1), (0, 1), "wrong_type"),
        ((2, 3), (3, 1), None, "wrong_type"),
        ((2, 3), (3, 1), (3,), "wrong_type"),
        ((2, 3), None, (1, 2), "passed"),  # a report of before strides were asked
        ((1, 3), (3, 1), (77, 1), "passed"),  # there is one row
        ((), (), (), "passed"),
    ],
)
def test_an_answer_lies_as_pytorchs_own_or_by_rows(
    shape: tuple[int, ...], asked: tuple[int, ...] | None, found: tuple[int, ...] | None, expected: str
) -> None:
    """By hand: a row-major 2 x 3 has strides 3 and 1. The verifier says the same."""
    made = report(draw(shape=shape, strides=found), expected=Expected(shape=shape, dtype="float32", strides=asked))
    assert outcome(made) == expected
    other = msgspec.json.decode(msgspec.json.encode(made), type=GateReport)
    assert derive_gate.outcome(other, PROBLEM, "fp32-strict") == expected


def test_limits_themselves_pass() -> None:
    assert outcome(report(draw(rel_l2=1e-6, max_rms=1e-5))) == "passed"


@pytest.mark.parametrize(
    ("changes", "contract", "expected"),
    [
        ({"type_ok": False}, "fp32-strict", "wrong_type"),
        ({"device_ok": False}, "fp32-strict", "wrong_type"),
        ({"dtype": "float16"}, "fp32-strict", "wrong_type"),
        ({"shape": (3, 2)}, "fp32-strict", "wrong_type"),
        ({"shape": None}, "fp32-strict", "wrong_type"),
        ({"inputs_unchanged": False}, "fp32-strict", "inputs_changed"),
        ({"nonfinite": 1}, "fp32-strict", "nonfinite"),
        ({"rel_l2": 5e-4, "max_rms": 5e-3}, "fp32-strict", "wrong_precision"),  # the size of a TF32 error
        ({"rel_l2": 1e-3, "max_rms": 1e-2}, "fp32-strict", "wrong_precision"),
        ({"rel_l2": 5e-4, "max_rms": 5e-2}, "fp32-strict", "wrong_result"),  # too wide for TF32 in one of the two
        ({"rel_l2": 5e-4, "max_rms": 5e-3}, "tf32-allowed", "passed"),
        ({"rel_l2": 5e-3}, "tf32-allowed", "wrong_result"),
        ({"rel_l2": None}, "fp32-strict", "wrong_result"),  # NaN is stored as null
        ({"max_rms": None}, "tf32-allowed", "wrong_result"),
    ],
)
def test_draw(changes: dict[str, Any], contract: str, expected: str) -> None:
    found, reason = judge_report(report(draw(), draw(**changes)), PROBLEM, contract)
    assert found == expected
    assert reason.startswith("draw 1: ") == (expected != "passed")
    assert ("zero everywhere" in reason) == (changes == {"rel_l2": None})


@pytest.mark.parametrize(("rel_l2", "contract", "expected"), MIXED_SIGNS)
def test_signs_mixed_have_limits_of_their_own(rel_l2: float, contract: str, expected: str) -> None:
    mixed = draw(
        kind="mixed_signs", eager=OutputErrors(nonfinite=0, rel_l2=0.0, max_rms=0.0), rel_l2=rel_l2, max_rms=0.0
    )
    problem = replace(PROBLEM, mixed_limits=MIXED_LIMITS)
    assert judge_report(report(draw(), mixed), problem, contract)[0] == expected


def test_signs_mixed_where_nobody_states_limits_for_it() -> None:
    mixed = draw(kind="mixed_signs", eager=OutputErrors(nonfinite=0, rel_l2=0.0, max_rms=0.0))
    assert outcome(report(draw(), mixed)) == "unfit_problem"
    unborne = replace(mixed, eager=OutputErrors(nonfinite=1, rel_l2=0.0, max_rms=0.0))
    assert outcome(report(draw(), unborne)) == "passed"


def test_order_within_a_draw_and_over_draws() -> None:
    bad = draw(type_ok=False, inputs_unchanged=False, nonfinite=1, rel_l2=None)
    assert outcome(report(bad)) == "wrong_type"
    assert outcome(report(draw(inputs_unchanged=False, nonfinite=1))) == "inputs_changed"
    assert outcome(report(draw(nonfinite=1, rel_l2=None))) == "nonfinite"
    assert outcome(report(draw(rel_l2=1.0), bad)) == "wrong_result"


def test_error_comes_first() -> None:
    error = ReportError(outcome="compile_error", text="line 3: no such name")
    found = judge_report(
        report(error=error, trivial={"zeros": Errors(rel_l2=0.0, max_rms=0.0)}), PROBLEM, "fp32-strict"
    )
    assert found == ("compile_error", "line 3: no such name")


def test_an_unknown_fault_is_no_outcome() -> None:
    error = ReportError(outcome="passed", text="within limits")  # type: ignore[arg-type]
    assert judge_report(report(error=error), PROBLEM, "fp32-strict") == ("run_error", "within limits")


def test_no_draws() -> None:
    assert outcome(report()) == "run_error"


@pytest.mark.parametrize(
    ("rel_l2", "max_rms", "expected"),
    [
        (1e-6, 1e-5, "unfit_problem"),
        (1e-7, 2e-5, "passed"),
        (2e-6, 1e-6, "passed"),
        (None, 0.0, "passed"),
        (0.0, None, "passed"),
    ],
)
def test_a_trivial_answer_that_passes_condemns_the_problem(rel_l2: float, max_rms: float, expected: str) -> None:
    trivial = {"ones": Errors(rel_l2=1.0, max_rms=1.0), "zeros": Errors(rel_l2=rel_l2, max_rms=max_rms)}
    assert outcome(report(draw(), trivial=trivial)) == expected


def test_draws_without_an_expectation_are_of_the_wrong_type() -> None:
    assert outcome(report(draw(), expected=None)) == "wrong_type"
    assert outcome(report(draw(), expected=Expected(shape=(2, 3), dtype="bfloat16"))) == "wrong_type"


def test_a_varying_result_is_a_fact_and_no_verdict() -> None:
    assert outcome(report(draw(), repeat_equal=False)) == "passed"


def test_contract_without_limits_is_refused() -> None:
    with pytest.raises(
        BadInput, match="toy_matmul: no limits for contract 'bf16-allowed'; expected one of fp32-strict"
    ):
        judge_report(report(draw()), PROBLEM, "bf16-allowed")


def test_seed() -> None:
    # By sha256sum: "7:aa:1" gives 64639c4e705afba1..., "7:aa:3" gives ba18491c5da4e709..., whose top bit goes.
    assert gate_seed(7, "aa", 1) == 0x64639C4E705AFBA1
    assert gate_seed(7, "aa", 3) == 0x3A18491C5DA4E709
    seeds = {gate_seed(7, "aa", 1), gate_seed(8, "aa", 1), gate_seed(7, "ab", 1), gate_seed(7, "aa", 2)}
    assert len(seeds) == 4
    assert all(0 <= gate_seed(7, "aa", attempt) < 2**63 for attempt in range(200))
