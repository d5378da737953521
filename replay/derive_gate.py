"""Gate outcome and input seed of FORMAT.md 6.2, from the stored report. Never runs a kernel."""

from __future__ import annotations

import hashlib

from msgspec import UnsetType

from ..events.model import Limits, ProblemDeclared
from .artifacts import Draw, Errors, Expected, GateReport
from .bounds import within

FAULTS = ("compile_error", "load_error", "run_error", "timeout", "out_of_memory", "worker_lost")
TIMES_EAGER = 8


def seed(registered: int, source: str, attempt: int) -> int:
    """The input seed that a source gets in an attempt: fixed by the registration and the source alone."""
    digest = hashlib.sha256(f"{registered}:{source}:{attempt}".encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") & (2**63 - 1)


def outcome(report: GateReport, problem: ProblemDeclared, contract: str) -> str:
    """What the report's facts amount to."""
    if report.error is not None:
        return report.error.outcome if report.error.outcome in FAULTS else "run_error"
    if not report.draws:
        return "run_error"
    limits = problem.limits[contract]
    if any(_within(errors, limits) for errors in report.trivial.values()):
        return "unfit_problem"
    for draw in report.draws:
        if not _asked(draw):
            continue
        stated = _stated(problem, draw.kind)
        if contract not in stated:
            return "unfit_problem"
        fault = _fault(draw, report, stated[contract])
        if fault == "wrong_result" and contract == "fp32-strict" and _tf32_like(draw, stated):
            return "wrong_precision"
        if fault is not None:
            return fault
    if not all(within(errors, limits) for errors in report.repeats):
        return "nondeterministic"
    if report.wall is not None and not all(within(errors, limits) for errors in report.wall.outputs):
        return "wrong_later"
    return "passed"


def misfits(report: GateReport, problem: ProblemDeclared, sized: bool) -> list[str]:
    """What a sound report of this problem cannot say, in words; `sized`: the call had the problem's declared sizes."""
    found = []
    if report.error is not None:
        if report.error.outcome not in FAULTS:
            found.append(f"error {report.error.outcome}")
        return found
    if report.draws and any(draw.kind == "mixed_signs" for draw in report.draws) != bool(_of_mixed(problem)):
        found.append("draws of mixed signs where the problem states limits for them, and only there")
    if report.draws and not report.trivial:
        found.append("draws, but no trivial answer beside them")
    if report.draws and report.expected is not None:
        if report.expected.dtype != problem.dtype:
            found.append(f"an expected dtype {report.expected.dtype} of a problem in {problem.dtype}")
        if sized and not set(report.expected.shape) <= {1, *problem.shape.values()}:
            found.append(f"an expected shape {report.expected.shape} of a problem of sizes {problem.shape}")
    return found


def _stated(problem: ProblemDeclared, kind: str) -> dict[str, Limits]:
    """The limits of draws of a kind by contract: its own, where the problem has them."""
    if kind == "mixed_signs":
        return _of_mixed(problem)
    own = {} if isinstance(problem.kind_limits, UnsetType) else problem.kind_limits
    return own.get(kind, problem.limits)


def _of_mixed(problem: ProblemDeclared) -> dict[str, Limits]:
    """The limits of draws of mixed signs by contract; empty where none are asked."""
    return {} if isinstance(problem.mixed_limits, UnsetType) else problem.mixed_limits


def _asked(draw: Draw) -> bool:
    """Inputs of another kind are asked of a candidate only where the problem's eager form bears them."""
    if draw.kind == "plain":
        return True
    eager = draw.eager
    return eager is not None and eager.nonfinite == 0 and eager.rel_l2 is not None and eager.max_rms is not None


def _beside(draw: Draw, limits: Limits) -> Limits:
    """The limits of a draw: of another kind than plain, none closer than some times the eager form's error."""
    eager = draw.eager
    if draw.kind == "plain" or eager is None or eager.rel_l2 is None or eager.max_rms is None:
        return limits
    return Limits(
        rel_l2=max(limits.rel_l2, TIMES_EAGER * eager.rel_l2),
        max_rms=max(limits.max_rms, TIMES_EAGER * eager.max_rms),
    )


def _fault(draw: Draw, report: GateReport, limits: Limits) -> str | None:
    expected = report.expected
    if expected is None:
        raise ValueError("the report has draws but no expected shape and dtype")
    as_expected = draw.shape == expected.shape and draw.dtype == expected.dtype and _readable(draw, expected)
    if not (draw.type_ok and draw.device_ok and as_expected):
        return "wrong_type"
    if not draw.inputs_unchanged:
        return "inputs_changed"
    if draw.nonfinite > 0:
        return "nonfinite"
    return None if _within(draw, _beside(draw, limits)) else "wrong_result"


def _readable(draw: Draw, expected: Expected) -> bool:
    """Whether the output's strides are the expected ones or those of a row-major tensor, in every dimension that has more than one index."""
    if expected.strides is None:
        return True
    if draw.strides is None or len(draw.strides) != len(expected.shape) or len(expected.strides) != len(expected.shape):
        return False
    dense: list[int] = []
    below = 1
    for size in reversed(expected.shape):
        dense.insert(0, below)
        below *= size
    many = [place for place, size in enumerate(expected.shape) if size != 1]
    found = [draw.strides[place] for place in many]
    return found in ([expected.strides[place] for place in many], [dense[place] for place in many])


def _within(errors: Errors, limits: Limits) -> bool:
    if errors.rel_l2 is None or errors.max_rms is None:
        return False
    return errors.rel_l2 <= limits.rel_l2 and errors.max_rms <= limits.max_rms


def _tf32_like(draw: Draw, stated: dict[str, Limits]) -> bool:
    loose = stated.get("tf32-allowed")
    return loose is not None and _within(draw, _beside(draw, loose))
