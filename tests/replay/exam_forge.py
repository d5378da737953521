"""Writes the examination of `exam_world.py` as an engine would, every recorded value from that page of hand-made ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from gpusolver.events.model import (
    ClauseSeen,
    CounterRow,
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    ExaminationStated,
    Interval,
    KernelExamined,
    PairCompared,
    PairDeclared,
    RuleAnswer,
    RulesAnswered,
    RuleSeeded,
    RunStopped,
    StaticRulesSeen,
    Statistics,
    SubjectDeclared,
    Verdict,
)
from gpusolver.events.writer import LedgerWriter

from . import exam_world as world
from .world import CHIP

STATISTICS = Statistics(blocks=12, tail_num=1, tail_den=20, margin=0.01, floor_multiple=2.0, looks=(4, 8, 12))
SOURCES = {name: f'PRECISION = "ieee"\n# {name}\n' for name in ("slow", "quick", "broken", "left", "right", "cheat")}
SUBJECTS = (
    # name, half, fires, silent
    ("slow", "calibration", ("uncoalesced", "no_clause"), ("conflicts", "bf16")),
    ("quick", "held-out", ("uncoalesced", "saturated"), ("halves", "no_clause")),
    ("broken", "", (), ()),
)
FIGURES: dict[str, float] = {
    "pair/better/FASTER": 2.0,
    "pair/better/SLOWER": 0.0,
    "pair/better/SAME": 0.0,
    "pair/better/AMBIGUOUS": 0.0,
    "pair/better/sampled_s": 2 * 8 * 7000 / 1e9,
    "pair/equal/FASTER": 0.0,
    "pair/equal/SLOWER": 0.0,
    "pair/equal/SAME": 1.0,
    "pair/equal/AMBIGUOUS": 0.0,
    "pair/equal/sampled_s": (11 * 8000 + 8400) / 1e9,
    "pair/cheat/FASTER": 0.0,
    "pair/cheat/SLOWER": 0.0,
    "pair/cheat/SAME": 0.0,
    "pair/cheat/AMBIGUOUS": 1.0,
    "pair/cheat/sampled_s": 4 * 4600 / 1e9,
    "matrix/calibration/expected": 4.0,
    "matrix/calibration/right": 4.0,
    "matrix/calibration/fired_on_missing": 0.0,
    "matrix/held-out/expected": 4.0,
    "matrix/held-out/right": 2.0,  # uncoalesced fires, halves does not; saturated is silent, no_clause fires
    "matrix/held-out/fired_on_missing": 0.0,
    "counters/compared": 7.0,
    "counters/within": 4.0,
    "examined/passed": 2.0,
    "examined/refused": 1.0,
}
PAIRS: tuple[tuple[str, str, int, Verdict], ...] = (
    ("better", "slow", 2, "FASTER"),
    ("equal", "slow", 1, "SAME"),
    ("cheat", "broken", 1, "AMBIGUOUS"),
)


def seed(source: str) -> int:
    """The first eight bytes of the digest of `<registered seed>:<source>:1`, without the top bit."""
    return int(hashlib.sha256(f"7:{source}:1".encode()).hexdigest()[:16], 16) % 2**63


class ExamForge:
    """One examination, event by event."""

    def __init__(self, ledger: LedgerWriter, run: str = "exam1", turn: int = 0) -> None:
        self.ledger, self.run, self._turn = ledger, run, turn
        self._blobs: dict[str, bytes] = {}

    def keep(self, content: str | dict[str, Any]) -> str:
        raw = (content if isinstance(content, str) else json.dumps(content)).encode()
        name = hashlib.sha256(raw).hexdigest()
        self._blobs[name] = raw
        return name

    def put(self, *events: Event) -> None:
        blobs = [(content, "application/octet-stream") for content in self._blobs.values()]
        self.ledger.append(self.run, self.ledger.version(self.run), events, blobs)
        self._blobs.clear()

    def all(self) -> None:
        self.begin()
        for place, (name, *_) in enumerate(SUBJECTS):
            self.subject(name, self._turn + place)
        self.beside()
        self.compare()
        stopped = RunStopped(run=self.run, cell=None, reason="plan completed", rule=None)
        self.put(ExaminationStated(run=self.run, figures=FIGURES), stopped)

    def begin(self) -> None:
        subjects = tuple(
            SubjectDeclared(
                name=name,
                problem=world.PROBLEM,
                contract="tf32-allowed",
                source=self.keep(SOURCES[name]),
                half=half,
                fires=fires,
                silent=silent,
            )
            for name, half, fires, silent in SUBJECTS
        )
        pairs = tuple(
            PairDeclared(
                name=name,
                subject=subject,
                left=self.keep(SOURCES["left"]),
                right=self.keep(SOURCES["cheat" if name == "cheat" else "right"]),
                times=times,
                truth=truth,
            )
            for name, subject, times, truth in PAIRS
        )
        registered = ExaminationRegistered(
            run=self.run,
            seed=7,
            purpose="made up",
            subjects=subjects,
            pairs=pairs,
            statistics=STATISTICS,
            code={"version": "made up"},
            environment={},
        )
        calibrated = DeviceCalibrated(
            run=self.run, device="gpu0", chip=CHIP, copy_gbps=500.0, calibration=self.keep(world.CALIBRATION)
        )
        self.put(registered, *(RuleSeeded(run=self.run, rule=r) for r in world.RULES), calibrated)

    def report(self, name: str) -> str:
        draw = {
            "shape": [512, 512],
            "dtype": "float32",
            "device_ok": True,
            "type_ok": True,
            "inputs_unchanged": True,
            "nonfinite": 0,
            "rel_l2": 0.5 if name == "broken" else 1e-4,
            "max_rms": 1e-3,
        }
        return self.keep(
            {
                "error": None,
                "seed": seed(hashlib.sha256(SOURCES[name].encode()).hexdigest()),
                "draws": [draw],
                "expected": {"shape": [512, 512], "dtype": "float32"},
                "trivial": {"zeros": {"rel_l2": 1.0, "max_rms": 4.0}},
                "repeat_equal": True,
            }
        )

    def subject(self, name: str, turn: int) -> None:
        passed = name != "broken"
        code = self.keep(f"code of {name}")
        listed = self.keep(world.launches(code, self.keep("tt.dot")))
        event = KernelExamined(
            run=self.run,
            subject=name,
            outcome="passed" if passed else "wrong_result",
            reason="within limits" if passed else "rel_l2 0.5 is above 0.001",
            report=self.report(name),
            launches=listed,
            samples=self.keep(world.samples(world.AA, turn)) if passed else None,
            counters=self.keep(world.COUNTERS) if passed else None,
            extras=self.extras(code, turn) if passed else {},
            tier="full" if passed else None,
            floor=world.FLOOR if passed else None,
            signals=world.SIGNALS if passed else {},
        )
        answers = tuple(_answer(*told) for told in world.ANSWERS)
        self.put(event, *([RulesAnswered(run=self.run, subject=name, answers=answers)] if passed else []))

    def extras(self, code: str, turn: int) -> dict[str, str]:
        warm = [[1700 + turn, 1600, 1600, 1700 - turn], *world.WARM[1:]]
        return {
            "compiled": self.keep(world.compiled(code)),
            "energy": self.keep(world.ENERGY),
            "kernels": self.keep(world.KERNELS),
            "timeline": self.keep(world.TIMELINE),
            "warm": self.keep(world.samples(warm, cache="warm")),
        }

    def beside(self) -> None:
        rows = tuple(
            CounterRow(metric=metric, ours=ours, theirs=theirs, bound=bound, within=within)
            for metric, ours, theirs, bound, within in world.ROWS
        )
        ours, theirs = self.keep(world.COUNTERS), self.keep(world.THEIRS)
        self.put(CountersCompared(run=self.run, subject="slow", ours=ours, theirs=theirs, rows=rows))
        self.put(StaticRulesSeen(run=self.run, subject="slow", answers=self.keep({"rules": []})))

    def compare(self) -> None:
        third = Interval(lower=2000 / 1500, median=2000 / 1500, upper=2000 / 1500, blocks=8, rank=1)
        one = Interval(lower=1.0, median=1.0, upper=1.0, blocks=12, rank=2)
        turn = self._turn
        for number in (1, 2):
            blocks = [[1000 * number + 1000 + turn, 1500, 1500, 3000 - 1000 * number - turn], *world.FASTER[1:]]
            self.pair("better", number, blocks, third, world.MARGIN, "FASTER", "interval beyond margin")
        self.pair(
            "equal",
            1,
            [*world.SAME[1 + turn :], *world.SAME[: 1 + turn]][::-1],
            one,
            world.MARGIN,
            "SAME",
            "interval within margin",
        )
        below = [[2000 + turn, 300, 300, 2000 - turn], *world.BELOW[1:]]
        self.pair("cheat", 1, below, None, 0.01, "AMBIGUOUS", "below physical floor")

    def pair(
        self,
        name: str,
        number: int,
        blocks: world.Blocks,
        found: Interval | None,
        margin: float,
        verdict: Verdict,
        reason: str,
    ) -> None:
        self.put(
            PairCompared(
                run=self.run,
                pair=name,
                number=number,
                samples=self.keep(world.samples(blocks)),
                interval=found,
                margin=margin,
                verdict=verdict,
                reason=reason,
            )
        )


def _answer(
    name: str, version: int, answer: Any, at: list[int], missing: list[str], reason: Any, gain: float | None
) -> RuleAnswer:
    clauses = [world.clauses(name)[i] for i in at]
    return RuleAnswer(
        rule=name,
        version=version,
        answer=answer,
        clauses=tuple(
            ClauseSeen(signal=c.signal, op=c.op, threshold=c.threshold, value=world.SIGNALS[c.signal]) for c in clauses
        ),
        missing=tuple(missing),
        reason=reason,
        predicted_gain=gain,
    )


def forge_examination(path: Path, examinations: int = 1) -> Path:
    """A ledger that holds only examinations."""
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        for number in range(1, examinations + 1):
            ExamForge(ledger, f"exam{number}", turn=3 * number - 3).all()
    return path
