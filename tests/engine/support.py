"""A stand-in executor with made-up kernels, so that the engine is tested without a GPU or torch. It measures nothing at all.

Every artifact that it hands out carries `"made_up": true`; no number here was ever measured.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpusolver.engine.executor import Observation, Question
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.events.model import Event, Origin, Policy, RoundJudged, RuleFired, RunRegistered, Statistics
from gpusolver.events.reader import LedgerReader
from gpusolver.events.rows import Recorded
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.sources import config_of
from gpusolver.projections.runs import RunView
from gpusolver.replay.verify import verify

TENSOR = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_active"
E = TypeVar("E", bound=Event)
TF32_LINE = 'PRECISION = "tf32"'
IEEE_ERROR, TF32_ERROR = (1e-6, 5e-6), (5e-4, 3e-3)
"""(rel_l2, max_rms) inside fp32-strict's limits of the matrix problems, and inside those of tf32-allowed only."""

# (rule, verdict, reason) of the rounds of the story below.
INERT = ("fp32_no_tensorcore", "SAME", "inert")
COALESCED = ("uncoalesced", "FASTER", "interval beyond margin")
TF32_WORKS = ("fp32_no_tensorcore", "FASTER", "interval beyond margin")


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A made-up kernel. `code` and `ttir` None is a library's; `metrics` None means that counters are refused."""

    ns: int
    code: str | None = None
    ttir: str | None = None
    errors: tuple[float, float] = IEEE_ERROR
    fault: str | None = None
    registers: int = 40
    metrics: dict[str, float] | None = None


def metrics(load_pct: float | None, tensor_pct: float) -> dict[str, float]:
    """Counters of one call; without `load_pct` no load was counted, as with loads by cp.async."""
    return {
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": load_pct or 0.0,
        "smsp__sass_inst_executed_op_global_ld.sum": 0 if load_pct is None else 1000,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 60.0,
        "dram__bytes_read.sum": 2_500_000,
        "dram__bytes_write.sum": 1_000_000,
        "sm__inst_executed_pipe_tensor_op_hmma.sum": 4096 if tensor_pct else 0,
        "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum": 0,
        TENSOR: tensor_pct,
    }


def matmul_story(text: str) -> Kernel:
    """kb_matmul_scalar: TF32 does nothing to the scalar kernel, and is worth 1.5x on the tiled one; BLOCK_K = 64 is best."""
    tf32 = TF32_LINE in text.split("\n")
    if "def operation" in text:
        return Kernel(ns=30_000 if tf32 else 60_000, errors=TF32_ERROR if tf32 else IEEE_ERROR)
    if "tl.dot(" not in text:
        return Kernel(ns=300_000, code="scalar", ttir="tt.load arith.mulf", metrics=metrics(40.0, 0.0))
    config = config_of(text)
    # Smallest at BLOCK_K 64 and the smallest sum of the others: for `coalesce` that is the fifth configuration, 82 us.
    spread = sum(config[key] for key in ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages"))
    ns = (75_000 if config["BLOCK_K"] == 64 else 90_000) + 100 * spread
    precision = "tf32" if tf32 else "ieee"
    return Kernel(
        ns=ns * 2 // 3 if tf32 else ns,
        code=f"tiled {precision} {sorted(config.items())}",
        ttir=f"tt.load tt.dot {precision}",
        errors=TF32_ERROR if tf32 else IEEE_ERROR,
        metrics=metrics(None, 30.0 if tf32 else 0.0),
    )


class FakeExecutor:
    """Answers from made-up kernels. `faults` maps (stage, n-th call of that stage from 1) to an infrastructure status."""

    name = "local"  # it stands in for the one that measures
    origin: Origin | None = None

    def __init__(
        self,
        kernels: Callable[[str], Kernel] = matmul_story,
        faults: dict[tuple[str, int], str] | None = None,
        device: str = "NVIDIA H200",
        before: Callable[[str], None] = lambda stage: None,
    ) -> None:
        self._kernels, self._faults, self._device, self._before = kernels, faults or {}, device, before
        self.calls: Counter[str] = Counter()
        self.checked: list[RunRegistered] = []
        self.resumed: list[Event] = []
        self.closed = False

    def facts(self) -> dict[str, str]:
        return {"device": self._device, "compute_capability": "9.0", "made_up": "yes"}

    def check(self, registration: RunRegistered) -> None:
        self.checked.append(registration)

    def calibrate(self) -> Observation:
        # 4 GB per copy in 1 ms: 4000 GB/s.
        return self._seen("calibrate", "calibration", {"copy": {"bytes": 4_000_000_000, "ns": [1_000_000] * 3}})

    def gate(self, question: Question, source: str) -> Observation:
        kernel = self._kernels(source)
        if kernel.fault is not None:
            error = {"outcome": kernel.fault, "text": f"made-up {kernel.fault}"}
            return self._seen("gate", "report", {"error": error, "seed": question.seed, **_NOTHING})
        rel_l2, max_rms = kernel.errors
        draw = {**_DRAW, "rel_l2": rel_l2, "max_rms": max_rms}
        trivial = {"zeros": {"rel_l2": 1.0, "max_rms": 3.0}}
        report: dict[str, Any] = {
            "error": None,
            "seed": question.seed,
            "draws": [draw, draw],
            "trivial": trivial,
            "repeat_equal": True,
        }
        wall = {"calls": 8, "ns": 8 * (kernel.ns + 30_000), "outputs": [_errors(kernel)] * 8}
        report |= {"repeats": [_errors(kernel)] * 2, "wall": wall, "spent_ns": 1_250_000_000, "first_ns": 250_000_000}
        seen = self._seen("gate", "report", {**report, "expected": _EXPECTED})
        if seen.status != "ok":
            return seen
        launches, blobs = _launches(kernel)
        return msgspec.structs.replace(seen, artifacts={**seen.artifacts, "launches": launches}, blobs=blobs)

    def statistics(self) -> Statistics | None:
        return None

    def policy(self) -> Policy | None:
        return None

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        a, b = self._kernels(left).ns, self._kernels(right).ns
        noise = self._noise(question, left, 2 * blocks)
        rows = [[a + a * x // 1000, b, b + b * y // 1000, a] for x, y in zip(noise[::2], noise[1::2], strict=True)]
        one, other = _errors(self._kernels(left)), _errors(self._kernels(right))
        outputs = {"pairs": [max(one, other, key=lambda e: e["rel_l2"])] * 2 * blocks, "ends": [[one, other]]}
        return self._seen("compare", "samples", {**_CLOCK, "blocks": rows, "outputs": outputs})

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        noise = iter(self._noise(question, template, 5 * len(sources)))
        rows = [(self._kernels(source), [next(noise) for _ in range(5)]) for source in sources]
        taken = [None if kernel.fault else [kernel.ns + x for x in row] for kernel, row in rows]
        return self._seen("sweep", "sweep", {**_CLOCK, "samples": taken})

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        counted = self._kernels(source).metrics
        if counted is None:
            return Observation(status="counters_permission", text="made up")
        listed = {name: counted.get(name) for name in metrics}
        facts = {"collector": "made up", "passes": 1, "chip": "GH100", "cache": "cold"}
        return self._seen("count", "counters", {**facts, "metrics": listed})

    def extra(self, question: Question, source: str, role: str) -> Observation:
        if role != "warm" or self._kernels(source).fault:
            return Observation(status="extra_unsupported", text=f"made up: no {role}")
        ns = self._kernels(source).ns * 4 // 5
        rows = [[ns + x, ns, ns, ns] for x in self._noise(question, f"warm {source}", 10)]
        return self._seen("extra", role, {**_CLOCK, "cache": "warm", "blocks": rows})

    def ncu(self, asked: Sequence[tuple[Question, str]], metrics: tuple[str, ...]) -> list[Observation]:
        return [Observation(status="ncu_unsupported", text="made up") for _ in asked]

    def resume(self, events: list[Event]) -> None:
        self.resumed = events

    def close(self) -> None:
        self.closed = True

    def _noise(self, question: Question, left: str, count: int) -> list[int]:
        """0, 1 or 2 (thousandths of a time: far under the margin of 1 %), another list in every measurement."""
        asked = f"{question.cell} {question.purpose} {question.seed} {hashlib.sha256(left.encode()).hexdigest()}"
        self.calls[asked] += 1
        return [byte % 3 for byte in hashlib.shake_256(f"{asked} {self.calls[asked]}".encode()).digest(count)]

    def _seen(self, stage: str, role: str, content: dict[str, Any]) -> Observation:
        self._before(stage)
        self.calls[stage] += 1
        status = self._faults.get((stage, self.calls[stage]), "ok")
        if status != "ok":
            return Observation(status=status, text=f"made-up {status}")
        return Observation(status="ok", artifacts={role: msgspec.json.encode({**content, "made_up": True})})


_CLOCK = {"clock": "cuda_event", "cache": "cold", "unit": "ns"}
_EXPECTED = {"shape": [512, 512], "dtype": "float32"}


def _errors(kernel: Kernel) -> dict[str, Any]:
    rel_l2, max_rms = kernel.errors
    return {"nonfinite": 0, "rel_l2": rel_l2, "max_rms": max_rms}


_NOTHING = {"draws": [], "expected": {"shape": [], "dtype": ""}, "trivial": {}, "repeat_equal": False}
_DRAW = {**_EXPECTED, "device_ok": True, "type_ok": True, "inputs_unchanged": True, "nonfinite": 0}


def _launches(kernel: Kernel) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    texts = (("application/x-cubin", kernel.code), ("text/x-ttir", kernel.ttir))
    blobs = tuple((media, f"made up: {text}".encode()) for media, text in texts if text is not None)
    digests = {media: hashlib.sha256(blob).hexdigest() for media, blob in blobs}
    launch = {
        "name": "made_up_kernel",
        "language": "library" if kernel.code is None else "triton",
        "code": digests.get("application/x-cubin"),
        "ttir": digests.get("text/x-ttir"),
        "grid": [256, 1, 1],
        "block": [128, 1, 1],
        "shared": 0,
        "scalars": [512, 512, 512],
        "registers": kernel.registers,
        "local_bytes": 0,
    }
    return msgspec.json.encode({"complete": True, "kernels": [launch], "made_up": True}), blobs


def slow(seconds: float) -> Callable[[str], None]:
    """A `before` that makes every measurement take that long."""
    return lambda stage: time.sleep(seconds)


# --- whole runs -------------------------------------------------------------------------------------------------------


def request(
    *arms: str, rounds: int = 12, contract: str = "tf32-allowed", problem: str = "kb_matmul_scalar"
) -> RunRequest:
    """One problem under one contract; arms off and on where none are named."""
    return RunRequest(problems=(problem,), arms=arms or ("off", "on"), contracts=(contract,), rounds=rounds)


def play(path: Path, executor: FakeExecutor, asked: RunRequest) -> RunView:
    """Start a run in the ledger at `path`, play it to its end and close the ledger."""
    with LedgerWriter(path) as ledger:
        return Run(ledger, executor, ignore).start(asked)


def ignore(done: int, total: int, text: str) -> None:
    """Watches nothing."""


def stored(path: Path) -> list[Recorded]:
    """Every event of a closed ledger."""
    with LedgerReader(path) as reader:
        return list(reader.recorded())


def cell_events(path: Path, arm: str) -> list[Event]:
    """The events of the cells of one arm, in order."""
    return [r.event for r in stored(path) if (cell := getattr(r.event, "cell", None)) and cell.arm == arm]


def only(events: Iterable[Event], kind: type[E]) -> list[E]:
    """Those of one kind."""
    return [event for event in events if isinstance(event, kind)]


def verdicts(events: Iterable[Event]) -> list[tuple[str, str, str]]:
    """(rule, verdict, reason) by round."""
    return [(e.rule, e.verdict, e.reason) for e in only(events, RoundJudged)]


def fired(events: Iterable[Event]) -> list[tuple[str, str]]:
    """(rule, structure of the incumbent) by firing."""
    return [(e.rule, e.context.structure) for e in only(events, RuleFired)]


def assert_verifies(path: Path) -> None:
    """The independent verifier, which shares no decision code with the engine, finds nothing."""
    findings = verify(path, True).findings
    assert not findings, "\n".join(map(str, findings[:5]))
