"""Gate outcome and input seed of FORMAT.md 6.2, from the stored report. Never runs a kernel."""

from __future__ import annotations

import hashlib

from ..events.model import Limits, ProblemDeclared
from .artifacts import Draw, Errors, GateReport


def seed(registered: int, source: str, attempt: int) -> int:
    """The input seed that a source gets in an attempt: fixed by the registration and the source alone."""
    digest = hashlib.sha256(f"{registered}:{source}:{attempt}".encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") & (2**63 - 1)


def outcome(report: GateReport, problem: ProblemDeclared, contract: str) -> str:
    """What the report's facts amount to."""
    if report.error is not None:
        return report.error.outcome
    if not report.draws:
        return "run_error"
    limits = problem.limits[contract]
    if any(_within(errors, limits) for errors in report.trivial.values()):
        return "unfit_problem"
    for draw in report.draws:
        fault = _fault(draw, report, limits)
        if fault == "wrong_result" and contract == "fp32-strict" and _tf32_like(draw, problem):
            return "wrong_precision"
        if fault is not None:
            return fault
    return "passed"


def _fault(draw: Draw, report: GateReport, limits: Limits) -> str | None:
    expected = report.expected
    if expected is None:
        raise ValueError("the report has draws but no expected shape and dtype")
    as_expected = draw.shape == expected.shape and draw.dtype == expected.dtype
    if not (draw.type_ok and draw.device_ok and as_expected):
        return "wrong_type"
    if not draw.inputs_unchanged:
        return "inputs_changed"
    if draw.nonfinite > 0:
        return "nonfinite"
    return None if _within(draw, limits) else "wrong_result"


def _within(errors: Errors, limits: Limits) -> bool:
    if errors.rel_l2 is None or errors.max_rms is None:
        return False
    return errors.rel_l2 <= limits.rel_l2 and errors.max_rms <= limits.max_rms


def _tf32_like(draw: Draw, problem: ProblemDeclared) -> bool:
    loose = problem.limits.get("tf32-allowed")
    return loose is not None and _within(draw, loose)
