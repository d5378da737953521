"""The gate's judgement on what the worker observed: correct, honest and within the precision contract. Never runs a kernel."""

from __future__ import annotations

from hashlib import sha256
from math import prod
from typing import get_args

from msgspec import UNSET

from ..events.errors import BadInput
from ..events.model import Limits, ProblemDeclared
from .artifacts import Draw, Errors, Expected, Fault, OutputErrors, Report

TIMES_EAGER, MIXED = 8.0, "mixed_signs"


def gate_seed(registered_seed: int, source_digest: str, attempt: int) -> int:
    """The seed of a gate's inputs, below 2^63: fixed only once the source is, so that no source can be fitted to it."""
    preimage = f"{registered_seed}:{source_digest}:{attempt}".encode("ascii")
    return int.from_bytes(sha256(preimage).digest()[:8], "big") & (2**63 - 1)


def judge_report(report: Report, problem: ProblemDeclared, contract: str) -> tuple[str, str]:
    """(outcome, reason) by replay/FORMAT.md section 6.2, the first that applies; the outcome `passed` has reason `within limits`.

    BadInput where the problem states no limits for the contract.
    """
    if report.error is not None:
        # The shape lets no other fault be decoded; one that was built in memory must not pass as an outcome either.
        known = report.error.outcome in get_args(Fault)
        return report.error.outcome if known else "run_error", report.error.text
    limits = _limits(problem, contract)
    if not report.draws:
        return "run_error", "no draws"
    for name, errors in report.trivial.items():
        if _within(errors, limits):
            return "unfit_problem", f"trivial answer '{name}' is within the limits: {_against(errors, limits)}"
    for index, draw in enumerate(report.draws):
        if found := _judge_draw(draw, report.expected, problem, contract):
            outcome, reason = found
            kind = "" if draw.kind == "plain" else f" ({draw.kind})"
            return outcome, f"draw {index}{kind}: {reason}"
    return _judge_later(report, limits) or ("passed", "within limits")


def right(found: OutputErrors, limits: Limits, times: float = 1.0) -> bool:
    """Whether an output is within so many times the limits, and finite where the other answer is."""
    return found.nonfinite == 0 and _within(found, _wider(limits, times))


def _wider(limits: Limits, times: float) -> Limits:
    return Limits(rel_l2=times * limits.rel_l2, max_rms=times * limits.max_rms)


def _judge_later(report: Report, limits: Limits) -> tuple[str, str] | None:
    """Calls after the first: again on the same inputs, and against the watch."""
    for index, found in enumerate(report.repeats):
        if not right(found, limits):
            return "nondeterministic", f"repeat {index}: {_against(found, limits)}"
    for index, found in enumerate(() if report.wall is None else report.wall.outputs):
        if not right(found, limits):
            return "wrong_later", f"watched call {index}: {_against(found, limits)}"
    return None


def _limits(problem: ProblemDeclared, contract: str) -> Limits:
    if contract not in problem.limits:
        known = ", ".join(problem.limits)
        raise BadInput(
            f"problem {problem.name}: no limits for contract {contract!r}; expected one of {known}; add them to its problem.toml"
        )
    return problem.limits[contract]


def _judge_draw(
    draw: Draw, expected: Expected | None, problem: ProblemDeclared, contract: str
) -> tuple[str, str] | None:
    if draw.kind != "plain" and not _fair(draw.eager):
        return None
    if contract not in _known(problem, draw):
        return "unfit_problem", "the problem states no limits for such inputs"
    if reason := _wrong_type(draw, expected):
        return "wrong_type", reason
    if not draw.inputs_unchanged:
        return "inputs_changed", "the call changed its inputs"
    if draw.nonfinite > 0:
        return (
            "nonfinite",
            f"{draw.nonfinite} elements are not finite where the reference is, or finite where it is not",
        )
    limits = _beside(_known(problem, draw)[contract], draw)
    if _within(draw, limits):
        return None
    looser = _known(problem, draw).get("tf32-allowed")
    if contract == "fp32-strict" and looser is not None and _within(draw, _beside(looser, draw)):
        return "wrong_precision", f"within tf32-allowed only: {_against(draw, limits)}"
    if draw.rel_l2 is None:
        return (
            "wrong_result",
            "no error is relative to the answer: in float64 it is zero everywhere, or too large for a norm",
        )
    return "wrong_result", _against(draw, limits)


def _known(problem: ProblemDeclared, draw: Draw) -> dict[str, Limits]:
    """The limits by contract of draws of this kind."""
    if draw.kind == MIXED:
        return {} if problem.mixed_limits is UNSET else problem.mixed_limits
    return problem.limits if problem.kind_limits is UNSET else problem.kind_limits.get(draw.kind, problem.limits)


def _fair(eager: OutputErrors | None) -> bool:
    """Whether inputs of another kind may be asked of a candidate: the problem's eager form in fp32 bears them."""
    return eager is not None and eager.nonfinite == 0 and eager.rel_l2 is not None and eager.max_rms is not None


def _beside(limits: Limits, draw: Draw) -> Limits:
    """The limits on a draw: on inputs of another kind than the problem's own, no closer than some times what eager fp32 gets there."""
    if draw.eager is None or draw.eager.rel_l2 is None or draw.eager.max_rms is None or draw.kind == "plain":
        return limits
    return Limits(
        rel_l2=max(limits.rel_l2, TIMES_EAGER * draw.eager.rel_l2),
        max_rms=max(limits.max_rms, TIMES_EAGER * draw.eager.max_rms),
    )


def _wrong_type(draw: Draw, expected: Expected | None) -> str | None:
    if not draw.type_ok:
        return "not a plain tensor"
    if not draw.device_ok:
        return "not on the device of the inputs"
    if expected is None:
        return "the report does not say what was expected"
    if draw.dtype != expected.dtype:
        return f"expected dtype {expected.dtype}, found {draw.dtype}"
    if draw.shape != expected.shape:
        return f"expected shape {expected.shape}, found {draw.shape}"
    if expected.strides is None:
        return None
    known = len(expected.strides) == len(expected.shape)
    if known and (_lies(draw, expected.strides) or _lies(draw, _by_rows(expected.shape))):
        return None
    return f"expected strides {expected.strides}, or {_by_rows(expected.shape)}, found {draw.strides}"


def _lies(draw: Draw, strides: tuple[int, ...]) -> bool:
    """Whether an output has these strides; those of a dimension of size 1 mean nothing."""
    if draw.shape is None or draw.strides is None or not len(draw.shape) == len(draw.strides) == len(strides):
        return False
    return all(a == b for size, a, b in zip(draw.shape, draw.strides, strides, strict=True) if size != 1)


def _by_rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense tensor, the last dimension fastest."""
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _within(errors: Errors, limits: Limits) -> bool:
    if errors.rel_l2 is None or errors.max_rms is None:
        return False
    return errors.rel_l2 <= limits.rel_l2 and errors.max_rms <= limits.max_rms


def _against(errors: Errors, limits: Limits) -> str:
    return f"rel_l2 {errors.rel_l2} (limit {limits.rel_l2}), max_rms {errors.max_rms} (limit {limits.max_rms})"
