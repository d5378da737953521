"""Planted kernels: a hit and a near miss for every rule, right on the CPU, and in machine code what they are said to be."""

from __future__ import annotations

import functools
import shutil
from typing import Any

import pytest

from gpusolver.engine.rules import rules
from gpusolver.events.errors import BadInput
from gpusolver.problems import planting
from gpusolver.problems.contract import CONTRACTS, declared, names
from gpusolver.problems.planting import evaluate, planted, unplanted
from gpusolver.problems.sources import config_of, strict_twin

from .test_kernels import child

BY_NAME = {kernel.name: kernel for kernel in planted()}


def test_every_rule_has_a_hit_and_a_near_miss_at_two_sizes_or_a_reason() -> None:
    wanted = {rule.name for rule in rules("full")}
    assert {kernel.rule for kernel in planted()} | set(unplanted()) == wanted
    assert not {kernel.rule for kernel in planted()} & set(unplanted())
    kinds = {(kernel.rule, kernel.kind, kernel.half) for kernel in planted()}
    assert len(kinds) == len(planted()) == 4 * len(wanted - set(unplanted()))
    assert all(unplanted().values())


def test_names_are_unique_and_fit_a_stream() -> None:
    assert len(BY_NAME) == len(planted())
    assert not any("/" in name or name in names() for name in BY_NAME)


def test_the_halves_differ_in_size() -> None:
    for kernel in planted():
        if kernel.half == "calibration":
            other = BY_NAME[kernel.name[:-1] + "b"]
            assert other.half == "held-out" and other.problem.shape != kernel.problem.shape


def test_nothing_is_blocked_for_want_of_a_variant() -> None:
    wanted = {rule.prescription for rule in rules("full") if rule.prescription is not None}
    for kernel in planted():
        assert set(declared(kernel.problem, "flags").prescriptions) == wanted


def test_a_hit_and_its_near_miss_compute_the_same() -> None:
    for kernel in planted():
        other = BY_NAME[kernel.name.replace("-near-", "-hit-")]
        assert kernel.problem.reference == other.problem.reference
        assert kernel.why and (kernel is other or kernel.why != other.why)


def test_contracts_and_limits() -> None:
    """A rule that asks for a contract meets it; the limits widen from contract to contract."""
    asked = {rule.name: rule.contracts for rule in rules("full")}
    for kernel in planted():
        assert not asked[kernel.rule] or kernel.contract in asked[kernel.rule]
        limits = [kernel.problem.limits[contract].rel_l2 for contract in CONTRACTS]
        assert limits == sorted(limits) and limits[-1] <= 1e-2


def test_sources_have_one_precision_line_and_one_configuration() -> None:
    for kernel in planted():
        assert kernel.problem.start == strict_twin(kernel.source)
        config = config_of(kernel.source)
        if "CODE = " in kernel.source:
            compile(kernel.source, kernel.name, "exec")
            assert config.get("LIVE", 16) == 16 or config["OP"] != 9  # the array of 16
            assert config.get("OP") not in (6, 7) or config["SHARED"] == 4 * config["BLOCK"]


def test_steps_are_odd_so_that_the_answer_is_one_flip() -> None:
    for kernel in planted():
        config = config_of(kernel.source)
        if config.get("OP") in (0, 1, 3, 8, 9):
            assert config["STEPS"] % 2 == 1 and config["HEAVY_STEPS"] % 2 == 1
        elif config.get("OP") == 2:
            assert config["STEPS"] % 2 == 0


@pytest.mark.parametrize(
    ("name", "flops", "min_bytes"),
    [
        ("bank_conflicts-hit-a", 4096 * 6144, 2 * 4 * 4096 * 6144),
        ("tensorcore_saturated-hit-a", 2 * 4096**3, 3 * 2 * 4096**2),
        ("rate_saturated-hit-b", 2 * 4096 * 4096 * 6144, 4 * (2 * 4096 * 6144 + 4096 * 4096)),
        ("excess_traffic-hit-a", 3 * 1056 * 65536, 4 * 1056 * 65537),
        ("attention_dominant-hit-a", 4 * 16 * 1024 * 1024 * 64, 4 * 4 * 16 * 1024 * 64),
        ("l2_resident-hit-a", 8448, 2 * 4 * 8448),
    ],
)
def test_counts_by_hand(name: str, flops: int, min_bytes: int) -> None:
    assert (BY_NAME[name].problem.flops, BY_NAME[name].problem.min_bytes) == (flops, min_bytes)


def test_occupancy_of_the_planted_launches() -> None:
    """By hand, of 233,472 bytes of shared memory and 64 warps an SM; 1 KB is reserved for each block."""
    shared = {name: config_of(BY_NAME[f"occupancy_shared-{name}-a"].source)["SHARED"] for name in ("hit", "near")}
    assert 233_472 // (shared["hit"] + 1024) == 2  # two blocks of 8 warps: a quarter
    assert 233_472 // (shared["near"] + 1024) >= 8  # eight blocks of 8 warps: all
    assert 233_472 // (config_of(BY_NAME["tail_wave-hit-a"].source)["SHARED"] + 1024) == 1
    assert 233_472 // (config_of(BY_NAME["latency_bound-hit-a"].source)["SHARED"] + 1024) == 1
    for size in "ab":
        assert BY_NAME[f"tail_wave-hit-{size}"].problem.shape["rows"] % 132 == 1
        assert BY_NAME[f"tail_wave-near-{size}"].problem.shape["rows"] % 132 == 131
        block = config_of(BY_NAME[f"occupancy_warps-hit-{size}"].source)["BLOCK"]
        assert block % 32 == 0 and (64 // (block // 32)) * (block // 32) < 0.8 * 64


def test_formulas_are_exact() -> None:
    sizes = {"m": 10**20 + 1, "k": 3}
    assert evaluate("2 * m * k", sizes) == 6 * 10**20 + 6
    assert evaluate("(m - 1) // 10**3 + k**2", sizes) == 10**17 + 9
    assert evaluate("k", {"k": 7}) == 7


@pytest.mark.parametrize(
    "formula", ["m / k", "__import__('os')", "unknown", "m +", "1.5 * m", "m // 0", "m ** k", "-m", "True"]
)
def test_formulas_are_sizes_whole_numbers_and_four_operations(formula: str) -> None:
    with pytest.raises(BadInput, match="expected"):
        evaluate(formula, {"m": 4, "k": 2})


def test_a_configuration_that_the_kernel_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = planting._Kernel(file="chase.py", cuda=True, config={"BLOCK": 64})
    side = planting._Side(kernel="chase", a={}, b={}, why="", config={"BLOKC": 32})
    with pytest.raises(BadInput, match=r"chase.py: no BLOKC in its config; expected \['BLOCK'\]"):
        planting._source(kernel, side, "a")


@functools.cache
def on_cpu() -> Any:
    return child("planted_on_cpu", TRITON_INTERPRET="1")


@functools.cache
def compiled() -> dict[str, Any]:
    return child("planted_compiled", TRITON_DISABLE_LINE_INFO="1")


@pytest.mark.torch_cpu
@pytest.mark.skipif(shutil.which("g++") is None, reason="CUDA C++ is emulated by way of g++")
def test_every_kernel_is_right_on_the_cpu() -> None:
    """Against float64 at small sizes, within the strict limits; no answer that computes nothing is within the widest."""
    assert {kernel.problem.reference.rsplit("/", 1)[1] for kernel in planted()} == {
        r["operation"] + ".py" for r in on_cpu()
    }
    for run in on_cpu():
        limits = BY_NAME[run["name"]].problem.limits
        assert run["same_shape"] and run["sizes_declared"] and run["inputs_kept"], run
        assert run["reference_dtype"] == "torch.float64"
        assert run["rel_l2"] <= limits["fp32-strict"].rel_l2 and run["max_rms"] <= limits["fp32-strict"].max_rms, run
        assert all(error["rel_l2"] > 10 * limits["bf16-allowed"].rel_l2 for error in run["trivial"].values()), run


def opcodes(rule: str, kind: str, first: str, size: str = "a") -> dict[str, int]:
    """Of a planted kernel the opcodes whose first word is `first`, with their counts."""
    found: dict[str, int] = compiled()[f"{rule}-{kind}-{size}"]["opcodes"]
    return {name: count for name, count in found.items() if name.split(".")[0] == first}


@pytest.mark.torch_cpu
class TestMachineCode:
    """Compiled for compute capability 9.0: the one thing that a pair differs in is there in the hit and mended in the near miss."""

    @pytest.fixture(autouse=True)
    def _needs_nvrtc(self) -> None:
        nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
        try:
            nvrtc.nvrtcVersion()
        except RuntimeError as error:
            pytest.skip(f"NVRTC's library is not there: {error}")

    def test_registers_and_local_memory(self) -> None:
        for size in "ab":
            spilled, kept = (compiled()[f"spills-{kind}-{size}"] for kind in ("hit", "near"))
            assert spilled["registers"] == 64 and spilled["stack"] > 0 and opcodes("spills", "hit", "LDL", size)
            assert kept["registers"] > 96 and kept["stack"] == 0 and not opcodes("spills", "near", "LDL", size)
            array, static = (compiled()[f"local_arrays-{kind}-{size}"] for kind in ("hit", "near"))
            assert array["registers"] < 64 and array["stack"] >= 64 and static["stack"] == 0
            for rule in ("reg_pressure", "occupancy_registers"):
                assert compiled()[f"{rule}-hit-{size}"]["registers"] > 96  # at most two blocks of 256: a quarter
                assert compiled()[f"{rule}-near-{size}"]["registers"] <= 51  # five blocks of 256: over a half

    def test_only_spills_and_arrays_use_local_memory(self) -> None:
        planted_there = {"spills", "local_arrays"}
        for name, found in compiled().items():
            if found is not None and (BY_NAME[name].rule not in planted_there or "-near-" in name):
                assert found["stack"] == 0, name

    def test_tensor_instructions(self) -> None:
        assert opcodes("mma_sync", "hit", "HMMA") and not opcodes("mma_sync", "hit", "HGMMA")
        assert opcodes("mma_sync", "near", "HGMMA") and not opcodes("mma_sync", "near", "HMMA")
        assert opcodes("tensorcore_saturated", "near", "HMMA")
        for kind, tensor in (("hit", False), ("near", True)):
            found = opcodes("fp32_no_tensorcore", kind, "HMMA") | opcodes("fp32_no_tensorcore", kind, "HGMMA")
            assert bool(found) == tensor

    def test_copies_to_shared_memory(self) -> None:
        assert not opcodes("no_async_copy", "hit", "LDGSTS") and opcodes("no_async_copy", "hit", "LDS")
        assert opcodes("no_async_copy", "near", "LDGSTS") and not opcodes("no_async_copy", "near", "LDG")

    def test_widths(self) -> None:
        assert set(opcodes("scalar_loads", "hit", "LDG")) == {"LDG.E"}
        assert set(opcodes("scalar_loads", "near", "LDG")) == {"LDG.E.128"}
        assert set(opcodes("narrow_shared", "hit", "LDS")) == {"LDS.U8"}
        assert set(opcodes("narrow_shared", "near", "LDS")) == {"LDS"}

    def test_arithmetic(self) -> None:
        assert opcodes("fp64_work", "hit", "DFMA") and not opcodes("fp64_work", "near", "DFMA")
        assert opcodes("nonfused_fp", "hit", "FMUL") == {"FMUL": opcodes("nonfused_fp", "hit", "FADD")["FADD"]}
        assert not opcodes("nonfused_fp", "hit", "FFMA") and not opcodes("nonfused_fp", "near", "FMUL")
        assert opcodes("slow_pipe", "hit", "MUFU") and not opcodes("slow_pipe", "near", "MUFU")
        assert compiled()["predicated_off-hit-a"]["predicated"] >= 32  # eight steps, unrolled four times
        assert compiled()["predicated_off-near-a"]["predicated"] <= 2

    def test_waits_and_atomics(self) -> None:
        assert opcodes("barrier_stalls", "hit", "BAR") and not opcodes("barrier_stalls", "near", "BAR")
        assert sum(opcodes("atomic_contention", "hit", "REDG").values()) == 4  # one for each element of a thread
        assert sum(opcodes("atomic_contention", "near", "REDG").values()) == 1  # one for each block
