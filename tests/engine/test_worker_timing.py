"""Samples of pairs in a real worker on the CPU: inputs by draw, switches that stay where they were set. No time here means anything."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from gpusolver.engine.local import LocalExecutor

from .candidates import HONEST, assert_unharmed, gate, open_worker, question

pytestmark = pytest.mark.torch_cpu

STRICT = {
    "fp32_precision": "none",
    "float32_matmul_precision": "highest",
    "cuda.matmul.allow_tf32": False,
    "cuda.matmul.allow_fp16_reduced_precision_reduction": False,
    "cuda.matmul.allow_bf16_reduced_precision_reduction": False,
    "cudnn.allow_tf32": False,
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
    "autocast": False,
    "deterministic": False,
    "flash_sdp": True,
    "mem_efficient_sdp": True,
    "math_sdp": True,
    "default_dtype": "torch.float32",
    "grad_mode": True,
}
LEAKS = {
    "autocast": ("torch.set_autocast_enabled('cuda', True)", True),
    "deterministic": ("torch.use_deterministic_algorithms(True)", True),
    "flash_sdp": ("torch.backends.cuda.enable_flash_sdp(False)", False),
    "math_sdp": ("torch.backends.cuda.enable_math_sdp(False)", False),
    "default_dtype": ("torch.set_default_dtype(torch.float64)", "torch.float64"),
    "grad_mode": ("torch.set_grad_enabled(False)", False),
    "cudnn.benchmark": ("torch.backends.cudnn.benchmark = True", True),
    "cudnn.deterministic": ("torch.backends.cudnn.deterministic = True", True),
    "cudnn.allow_tf32": ("torch.backends.cudnn.allow_tf32 = True", True),
    "cuda.matmul.allow_fp16_reduced_precision_reduction": (
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True",
        True,
    ),
}
# A candidate that is right only while every switch is strict, and says which one is not.
STRICT_ONLY = """
import torch

def run(x):
    assert torch.get_default_dtype() is torch.float32, "default dtype leaked"
    assert torch.is_grad_enabled(), "grad mode leaked"
    assert torch.get_float32_matmul_precision() == "highest", "matmul precision leaked"
    assert not torch.backends.cuda.matmul.allow_tf32, "matmul TF32 leaked"
    assert not torch.backends.cudnn.allow_tf32, "cudnn TF32 leaked"
    assert not torch.backends.cudnn.benchmark, "benchmark leaked"
    return torch.softmax(x, -1)
"""


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


def leaking(statement: str) -> str:
    return HONEST.replace("    return", f"    {statement}\n    return")


def samples(executor: LocalExecutor, left: str, right: str, blocks: int = 2, first: int = 0) -> dict[str, Any]:
    seen = executor.compare(question(), left, right, blocks, first)
    assert seen.status == "ok", seen.text
    found: dict[str, Any] = json.loads(seen.artifacts["samples"])
    return found


@pytest.mark.parametrize("name", LEAKS)
def test_what_an_arm_leaves_on_is_recorded_on_its_side_alone(executor: LocalExecutor, name: str) -> None:
    statement, value = LEAKS[name]
    found = samples(executor, STRICT_ONLY, leaking(statement))["switches"]
    assert found["right"] == {**STRICT, name: value}
    assert found["left"] == STRICT
    turned = samples(executor, leaking(statement), STRICT_ONLY)["switches"]
    assert (turned["left"], turned["right"]) == (found["right"], found["left"])


@pytest.mark.parametrize(
    "statement",
    ["torch.set_float32_matmul_precision('medium')", "torch.backends.cuda.matmul.allow_tf32 = True"],
)
def test_matmul_precision_is_one_switch_under_two_names(executor: LocalExecutor, statement: str) -> None:
    found = samples(executor, STRICT_ONLY, leaking(statement))["switches"]
    assert found["left"] == STRICT
    assert found["right"]["cuda.matmul.allow_tf32"] and found["right"]["float32_matmul_precision"] in ("high", "medium")


@pytest.mark.parametrize(
    "statement",
    [
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
        "torch.backends.fp32_precision = 'tf32'",
    ],
)
def test_switches_set_in_parts_that_torch_refuses_to_read_harm_nobody(executor: LocalExecutor, statement: str) -> None:
    """Torch raises when its older names are asked after its newer ones were set: recorded as `mixed`, and set right again."""
    found = samples(executor, STRICT_ONLY, leaking(statement))["switches"]
    assert found["left"] == STRICT
    assert {value for name, value in found["right"].items() if value != STRICT[name]} <= {"mixed", "tf32"}
    assert found["right"] != STRICT
    assert_unharmed(executor)


def test_the_worker_is_left_as_it_was_found(executor: LocalExecutor) -> None:
    before = samples(executor, HONEST, HONEST)["switches"]["before"]
    samples(executor, leaking(LEAKS["default_dtype"][0]), leaking(LEAKS["cudnn.benchmark"][0]))
    assert samples(executor, HONEST, HONEST)["switches"]["before"] == before


# It writes down the first element of every draw that it meets.
SEES = """
import pathlib
import torch

def run(x):
    with pathlib.Path({path!r}).open("a") as log:
        log.write(f"{{float(x.flatten()[0])!r}}\\n")
    return torch.softmax(x, -1)
"""


def test_block_i_has_two_draws_of_its_own_by_its_number(executor: LocalExecutor, tmp_path: Any) -> None:
    """Blocks 2 and 3 asked for as a second look meet the inputs that they would meet in one look of four."""

    def draws(name: str, blocks: int, first: int) -> list[str]:
        path = tmp_path / name
        found = samples(executor, SEES.format(path=str(path)), HONEST, blocks, first)
        assert (len(found["blocks"]), found["first"]) == (blocks, first)
        seen: list[str] = path.read_text().split()
        return seen[-2 * blocks :]  # the left arm runs twice in a block, after its warm-up

    whole = draws("whole", 4, 0)
    assert len(set(whole)) == 8
    assert [*draws("first", 2, 0), *draws("second", 2, 2)] == whole


def test_the_outputs_of_timed_calls_are_compared(executor: LocalExecutor) -> None:
    """Twice the right answer is one norm away from it, on each of two draws a block and against the reference at both ends."""
    outputs = samples(executor, HONEST, HONEST.replace("-1)", "-1) * 2"), blocks=3)["outputs"]
    assert [row["rel_l2"] for row in outputs["pairs"]] == [pytest.approx(1.0, abs=1e-6)] * 6
    assert len(outputs["ends"]) == 2
    for left, right in outputs["ends"]:
        assert left["rel_l2"] < 1e-6 and right["rel_l2"] == pytest.approx(1.0, abs=1e-6)


def test_an_answer_that_comes_in_the_gate_alone_is_found_in_the_times(executor: LocalExecutor) -> None:
    """Right for thirty calls, wrong from then on: the gate sees the former, the timed calls the latter."""
    source = """
import torch

CALLS = []

def run(x):
    CALLS.append(1)
    return torch.softmax(x, -1) if len(CALLS) <= 30 else torch.zeros_like(x)
"""
    assert gate(executor, source) == ("passed", "within limits")
    outputs = samples(executor, HONEST, source, blocks=4)["outputs"]
    assert outputs["pairs"][-1]["rel_l2"] == pytest.approx(1.0)


@pytest.mark.parametrize("role", ["timeline", "warm", "compiled", "energy", "kernels"])
def test_the_stand_in_has_no_extras_and_says_so(executor: LocalExecutor, role: str) -> None:
    seen = executor.extra(question(), HONEST, role)
    assert (seen.status, seen.artifacts) == ("extra_unsupported", {}) and role in seen.text


def test_an_extra_under_which_the_worker_dies_is_no_fault_of_the_run(executor: LocalExecutor) -> None:
    assert_unharmed(executor)
    assert executor.worker_pid is not None
    os.kill(executor.worker_pid, signal.SIGKILL)
    seen = executor.extra(question(), HONEST, "warm")
    assert seen.status == "extra_failed" and seen.text.startswith("worker_lost: ")
    assert_unharmed(executor)


def test_the_stand_ins_calibration_has_an_l2_rate_and_no_limits(executor: LocalExecutor) -> None:
    found = json.loads(executor.calibrate().artifacts["calibration"])
    assert found["l2"]["bytes"] > 0 and all(isinstance(ns, int) and ns > 0 for ns in found["l2"]["ns"])
    assert "limits" not in found


def test_the_stand_in_has_no_telemetry(executor: LocalExecutor) -> None:
    found = samples(executor, HONEST, HONEST)
    assert found["before"] == found["after"] == {}
