"""A made-up device, rule table and problem: times, counters and reports that no GPU ever gave."""

from __future__ import annotations

import random

from gpusolver.events.artifacts import digest
from gpusolver.events.model import (
    Chip,
    Clause,
    Gain,
    Guard,
    Limits,
    ProblemDeclared,
    Rule,
)
from gpusolver.profilers import artifacts as shapes

CHIP = Chip(name="TOY1", compute_capability="9.0", peaks_tflops={"fp32": 10.0, "tf32": 80.0}, dram_gbps=1000.0)
START = 'PRECISION = "ieee"\ndef kernel(a, b):\n    return scalar(a, b)\n'
TEMPLATE = 'PRECISION = "ieee"\nCONFIG = {"BLOCK": 0}\ndef kernel(a, b):\n    return dot(a, b)\n'
CONFIGS = ({"BLOCK": 32}, {"BLOCK": 64}, {"BLOCK": 4096}, {"BLOCK": 128})
LIMITS = {"fp32-strict": Limits(rel_l2=1e-6, max_rms=1e-5), "tf32-allowed": Limits(rel_l2=1e-3, max_rms=1e-2)}


def rule(name: str, position: int, clauses: list[tuple[str, str, float]], **more: object) -> Rule:
    """A rule of tier 1 with the usual defaults."""
    fields: dict[str, object] = {
        "version": 1,
        "tier": 1,
        "stop": False,
        "prescription": name,
        "guards": (),
        "contracts": (),
        "gain": Gain(form="constant", cap=2.0),
        "metrics": (),
        "origin": "seed",
        "rationale": "made up",
    }
    parsed = tuple(Clause(signal=s, op=op, threshold=t) for s, op, t in clauses)  # type: ignore[arg-type]
    return Rule(name=name, position=position, clauses=parsed, **(fields | more))  # type: ignore[arg-type]


RULES = (
    rule("saturated", 1, [("headroom", "<", 3.0)], tier=0, stop=True, prescription=None),
    rule("uncoalesced", 2, [("load_eff", "<", 0.7)]),
    rule("fp16", 3, [("time_us", ">", 0.0)], guards=(Guard(over="fp16", under="fp32", at_least=2.0),)),
    rule("bf16", 4, [("time_us", ">", 0.0)], contracts=("bf16-allowed",)),
    rule("fuse", 5, [("kernel_count", ">=", 1.0)]),
    rule(
        "tf32",
        6,
        [("tensor_active", "==", 0.0), ("headroom", ">", 2.0)],
        guards=(Guard(over="tf32", under="fp32", at_least=2.0),),
        contracts=("tf32-allowed",),
        gain=Gain(form="peak_ratio", cap=4.0, over="tf32", under="fp32"),
    ),
    rule("tiles", 7, [("headroom", ">", 2.0)], gain=Gain(form="signal", cap=64.0, signal="headroom")),
)
POLISH = rule("polish", 0, [("headroom", ">", 10.0)])
PROBLEM = ProblemDeclared(
    name="toy",
    digest="ab" * 32,
    family="gemm",
    dtype="float32",
    shape={"k": 512, "m": 512, "n": 512},
    flops=2 * 512**3,
    min_bytes=3 * 4 * 512 * 512,
    weight=1.0,
    limits=LIMITS,
    prescriptions=("polish", "tf32", "tiles", "uncoalesced"),
)


class World:
    """Made-up answers of a device: times by source, noise from a seed. `jitter` in ns; `start_error` is the start's rel_l2."""

    def __init__(self, seed: int = 1, jitter: int = 40, start_error: float = 3e-7) -> None:
        self.start_error = start_error
        self._random, self._sweeping = random.Random(seed), random.Random(f"sweeps {seed}")
        self._jitter = jitter
        self.blobs: dict[str, bytes] = {}

    def keep(self, content: bytes) -> str:
        name = digest(content)
        self.blobs[name] = content
        return name

    def keep_json(self, artifact: shapes.Artifact) -> str:
        return self.keep(shapes.encode(artifact))

    def true_ns(self, text: str) -> int:
        """A scalar kernel takes 300 us whatever its precision; a dot by its tiles, tf32 makes it half, polish a fifth less."""
        ns = self.unpolished_ns(text)
        for _ in range(text.count("# polish")):
            ns = ns * 4 // 5
        return ns

    def unpolished_ns(self, text: str) -> int:
        if "scalar" in text:
            return 300_000
        blocks = {"32": 120_000, "64": 90_000, "128": 90_000, "4096": 900_000}
        ns = blocks[text.split('"BLOCK": ')[1].split("}")[0]]
        return ns // 2 if "tf32" in text else ns

    def noisy(self, text: str) -> int:
        return self.true_ns(text) + self._random.randint(-self._jitter, self._jitter)

    def swept(self, text: str, count: int) -> tuple[int, ...]:
        """A sweep's times of one configuration."""
        return tuple(self.true_ns(text) + self._sweeping.randint(0, 70) for _ in range(count))

    def samples(self, left: str, right: str, blocks: int) -> tuple[str, shapes.Samples]:
        rows = tuple(tuple(self.noisy(t) for t in (left, right, right, left)) for _ in range(blocks))
        made = shapes.Samples(clock="cuda_event", cache="cold", blocks=rows)  # type: ignore[arg-type]
        return self.keep_json(made), made

    def launches(self, text: str) -> tuple[str, shapes.Launches]:
        machine = text.replace("tf32", "ieee") if "scalar" in text else text
        made = shapes.Launch(
            name="kernel",
            language="triton",
            code=self.keep(b"code of " + machine.encode()),
            ttir=self.keep(b"tt.dot" if "dot(" in text else b"arith.mulf"),
            grid=(16, 16, 1),
            block=(128, 1, 1),
            shared=0,
            scalars={"n": 512},
            registers=64,
            local_bytes=0,
        )
        listed = shapes.Launches(complete=True, kernels=(made,))
        return self.keep_json(listed), listed

    def counters(self, text: str) -> tuple[str, shapes.Counters]:
        busy = 40.0 if "tf32" in text and "dot(" in text else 0.0
        metrics: dict[str, int | float | None] = {
            "dram__bytes_read.sum": 2_097_152,
            "dram__bytes_write.sum": 1_048_576,
            "smsp__sass_inst_executed_op_global_ld.sum": 0,
            "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 0.0,
            "sm__warps_active.avg.pct_of_peak_sustained_active": 37.5,
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": busy,
            "sm__inst_executed_pipe_tensor_op_hmma.sum": 4096 if busy else 12,
            "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": 12,
        }
        made = shapes.Counters(collector="made-up", passes=1, chip="TOY1", cache="cold", metrics=metrics)
        return self.keep_json(made), made

    def report(self, text: str, seed: int) -> tuple[str, shapes.Report]:
        close = self.start_error if "scalar" in text else 4e-4 if "tf32" in text and "dot(" in text else 3e-7
        draw = shapes.Draw(
            rel_l2=close,
            max_rms=close * 4,
            shape=(512, 512),
            dtype="float32",
            device_ok=True,
            type_ok=True,
            inputs_unchanged=True,
            nonfinite=0,
        )
        made = shapes.Report(
            error=None,
            seed=seed,
            draws=(draw, draw),
            expected=shapes.Expected(shape=(512, 512), dtype="float32"),
            trivial={"zeros": shapes.Errors(rel_l2=1.0, max_rms=4.0)},
            repeat_equal=True,
        )
        return self.keep_json(made), made
