"""Small artifacts and registered values with round numbers, for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence

from gpusolver.events.model import Chip, Limits, ProblemDeclared, Statistics
from gpusolver.profilers.artifacts import Draw, Expected, Launch, Launches, Report, Samples

CHIP = Chip(
    name="toy", compute_capability="9.0", peaks_tflops={"fp32": 50.0, "tf32": 400.0, "bf16": 800.0}, dram_gbps=5000.0
)
UNKNOWN = Chip(name="none such", compute_capability="9.0", peaks_tflops={}, dram_gbps=0.0)
# 4 MB and 0.8 GFLOP: at 5000 GB/s 800 ns, at 50 TFLOP/s 16000 ns, at 400 TFLOP/s 2000 ns.
PROBLEM = ProblemDeclared(
    name="toy_matmul",
    digest="0" * 64,
    family="matmul",
    dtype="float32",
    shape={"n": 1000},
    flops=800_000_000,
    min_bytes=4_000_000,
    weight=1.0,
    limits={
        "fp32-strict": Limits(rel_l2=1e-6, max_rms=1e-5),
        "tf32-allowed": Limits(rel_l2=1e-3, max_rms=1e-2),
    },
    prescriptions=("tile",),
)
STATISTICS = Statistics(blocks=10, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)


def samples(pairs: Sequence[tuple[int, int]]) -> Samples:
    """Blocks whose two A times, and whose two B times, are equal."""
    return Samples(clock="cuda_event", cache="cold", blocks=tuple((a, b, b, a) for a, b in pairs))


def launch(code: str | None = "c1", **other: object) -> Launch:
    """A Triton launch on a 4 x 1 x 1 grid, changed by `other`."""
    fields: dict[str, object] = {
        "name": "kernel",
        "language": "triton",
        "code": code,
        "grid": (4, 1, 1),
        "block": (128, 1, 1),
        "shared": 1024,
        "scalars": {"n": 1000},
    }
    return Launch(**(fields | other))  # type: ignore[arg-type]


def launches(*kernels: Launch, complete: bool = True) -> Launches:
    """A launch list."""
    return Launches(complete=complete, kernels=kernels)


def draw(**other: object) -> Draw:
    """A draw that passes `fp32-strict`, changed by `other`."""
    fields: dict[str, object] = {
        "shape": (2, 3),
        "dtype": "float32",
        "device_ok": True,
        "type_ok": True,
        "inputs_unchanged": True,
        "nonfinite": 0,
        "rel_l2": 1e-7,
        "max_rms": 1e-6,
    }
    return Draw(**(fields | other))  # type: ignore[arg-type]


def report(*draws: Draw, **other: object) -> Report:
    """A report on `draws`, changed by `other`."""
    fields: dict[str, object] = {
        "error": None,
        "seed": 1,
        "draws": draws,
        "expected": Expected(shape=(2, 3), dtype="float32"),
    }
    return Report(**(fields | other))  # type: ignore[arg-type]
