"""Every kernel source without a GPU: interpreted against float64, and compiled for a chip that is not there."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusolver.problems.contract import load, names

pytestmark = pytest.mark.torch_cpu
every_problem = pytest.mark.parametrize("name", names())
ROOT = Path(__file__).parents[2]
LIBRARY = ("2d_convolution", "llama")  # torch operations alone, in every variant
HOPPER_SHARED = 227 * 1024  # bytes of shared memory that one block may use on compute capability 9.0


def child(module: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """The JSON that a module of this folder prints; a process cannot both interpret and compile."""
    clean = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", f"tests.problems.{module}", *arguments]
    done = subprocess.run(command, env=clean | environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@functools.cache
def interpreted(name: str) -> dict[str, Any]:
    return child("interpreted", name, TRITON_INTERPRET="1")


@functools.cache
def compiled(name: str) -> dict[str, Any]:
    return child("compiled", name, "90", TRITON_DISABLE_LINE_INFO="1")


def within(errors: dict[str, float], name: str, contract: str) -> bool:
    limits = load(name).limits[contract]
    return errors["rel_l2"] <= limits.rel_l2 and errors["max_rms"] <= limits.max_rms


@every_problem
def test_every_source_is_right_on_small_and_odd_sizes(name: str) -> None:
    seen = interpreted(name)
    assert seen["reference_dtype"] == "torch.float64"
    assert {run["shape"] for run in seen["runs"]} == {"small", "odd"}
    assert {run["label"] for run in seen["runs"]} > {"start", "eager"}
    for run in seen["runs"]:
        assert run["same_shape"] and run["inputs_kept"] and run["dtype"] == "float32", run
        assert within(run, name, "fp32-strict"), run


@every_problem
def test_trivial_answers_are_beyond_the_widest_limits(name: str) -> None:
    for controls in interpreted(name)["trivial"].values():
        assert set(controls) >= {"zeros", "ones", "mean", "shuffled"}
        for errors in controls.values():
            assert errors["rel_l2"] > 10 * load(name).limits["bf16-allowed"].rel_l2


@every_problem
def test_precision_switches_are_put_back(name: str) -> None:
    assert interpreted(name)["switches"] == [False, True]  # torch's defaults


PRODUCTS = [name for name in names() if load(name).family in ("matmul", "conv", "network")]


@pytest.mark.parametrize("name", PRODUCTS)
def test_limits_of_a_product_part_the_formats_of_its_inputs(name: str) -> None:
    formats = interpreted(name)["formats"]["plain"]
    for tf32 in ("tf32 rounded", "tf32 cut"):
        assert not within(formats[tf32], name, "fp32-strict")
        assert within(formats[tf32], name, "tf32-allowed")
    assert not within(formats["bf16"], name, "tf32-allowed")
    assert within(formats["bf16"], name, "bf16-allowed")
    assert not within(formats["e4m3"], name, "bf16-allowed")


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_kind_of_inputs_that_a_gate_draws_leaves_honest_formats_within_the_limits(name: str) -> None:
    kinds = interpreted(name)["formats"]
    assert len(kinds) == 5
    for kind, formats in kinds.items():
        for allowed, found in (("tf32", ("tf32 rounded", "tf32 cut")), ("bf16", ("bf16",))):
            assert all(within(formats[each], name, f"{allowed}-allowed") for each in found), kind


@every_problem
def test_kernels_compile_for_hopper_within_shared_memory(name: str) -> None:
    seen = compiled(name)
    kernels = [kernel for by in seen.values() for launches in by.values() for kernel in launches]
    assert bool(kernels) == (name not in LIBRARY)
    assert all(kernel["shared"] <= HOPPER_SHARED for kernel in kernels)


@every_problem
def test_the_flag_changes_machine_code_where_there_is_a_dot_and_nowhere_else(name: str) -> None:
    for label, by in compiled(name).items():
        for strict, loose in zip(by["ieee"], by["tf32"], strict=True):
            if strict["dot"]:
                assert not strict["tensor"], label
                assert any("TF32" in opcode for opcode in loose["tensor"]), label
            else:
                assert strict == loose, label


def test_the_scalar_product_is_uncoalesced_and_has_no_dot() -> None:
    (start,) = compiled("kb_matmul_scalar")["start"]["ieee"]
    assert start["grid"] == [16, 16] and not start["dot"]  # 512 / 32 tiles each way
    assert "LDG.E" in start["memory"] and "LDG.E.128" not in start["memory"]
    (tiled,) = compiled("kb_matmul_scalar")["coalesce_any_0"]["ieee"]
    assert any(opcode.startswith("LDGSTS") and opcode.endswith("128") for opcode in tiled["memory"])
