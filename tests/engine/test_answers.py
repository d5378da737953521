"""Answers that a candidate may write in its worker's name: what does not fit the question is a lost worker, never an error of the run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpusolver.engine.answers import refusal
from gpusolver.engine.worker.protocol import (
    Arena,
    Compare,
    Count,
    Draw,
    Extra,
    Gate,
    Message,
    Reply,
    Staged,
    Subject,
    Sweep,
)
from gpusolver.events.artifacts import digest

DRAW = Draw(index=0, inputs=(), outputs=())
STAGED = Staged(arena=Arena(kind="file", key="a", size=1), draws=(DRAW, DRAW))
SUBJECT = Subject(reference="", shape={}, seed=0)
ROW = {"shape": [2], "dtype": "float32", "device_ok": True, "type_ok": True, "strides": [1], "inputs_unchanged": True}
ROWS = {"error": None, "draws": [ROW, ROW]}
CODE = b"machine code"
LAUNCHES = {"complete": True, "kernels": [{"name": "k", "language": "triton", "code": digest(CODE)}]}
SAMPLES = {"clock": "cuda_event", "cache": "cold", "blocks": [[1, 2, 3, 4]]}
GATE, COMPARE = Gate(source="", staged=STAGED, repeats=0), Compare(left="", right="", staged=STAGED, first=0)
METERED, BATCH = (
    Compare(left="", right="", staged=STAGED, first=0, energy=True),
    {"millijoules": 9, "calls": 3, "milliseconds": 2},
)
SWEEP = Sweep(sources=("a", "b"), staged=STAGED)
COUNT, ENERGY = Count(subject=SUBJECT, source="", metrics=()), Extra(subject=SUBJECT, source="", role="energy")


def reply(blobs: tuple[tuple[str, bytes], ...] = (), **artifacts: object) -> Reply:
    return Reply(
        status="ok", artifacts={role: msgspec.json.encode(each) for role, each in artifacts.items()}, blobs=blobs
    )


WITH_CODE = (("application/octet-stream", CODE),)
SOUND: list[tuple[Message, Reply]] = [
    (GATE, reply(WITH_CODE, rows=ROWS, launches=LAUNCHES)),
    (GATE, reply(rows={"error": {"outcome": "run_error", "text": "boom"}})),
    (COMPARE, reply(samples=SAMPLES)),
    (METERED, reply(samples={**SAMPLES, "energy": [[BATCH] * 4]})),
    (SWEEP, reply(sweep={"samples": [None, [5, 6]]})),
    (COUNT, reply(counters={"collector": "none", "passes": 0, "chip": "", "cache": "", "metrics": {}})),
    (ENERGY, reply(energy={"windows": []})),
    (GATE, Reply(status="context_lost")),
]


@pytest.mark.parametrize(("request_", "answer"), SOUND)
def test_what_a_sound_worker_says_is_taken(request_: Message, answer: Reply) -> None:
    assert refusal(request_, answer) == ""


def with_(row: dict[str, Any], **changes: object) -> dict[str, Any]:
    return {**row, **changes}


FORGED: dict[str, tuple[Message, Reply]] = {
    "nothing": (GATE, reply()),
    "an answer to another question": (COMPARE, reply(WITH_CODE, rows=ROWS, launches=LAUNCHES)),
    "a draw too few": (GATE, reply(WITH_CODE, rows={"error": None, "draws": [ROW]}, launches=LAUNCHES)),
    "no launches": (GATE, reply(rows=ROWS)),
    "launches whose code did not come along": (GATE, reply(rows=ROWS, launches=LAUNCHES)),
    "an outcome of its own": (GATE, reply(rows={"error": {"outcome": "passed", "text": ""}})),
    "a row of another shape": (GATE, reply(WITH_CODE, rows={"error": None, "draws": [1, 2]}, launches=LAUNCHES)),
    "a block too many": (COMPARE, reply(samples=with_(SAMPLES, blocks=[[1, 2, 3, 4]] * 2))),
    "no energies where they are asked for": (METERED, reply(samples=SAMPLES)),
    "energies of more blocks": (METERED, reply(samples=with_(SAMPLES, energy=[[BATCH] * 4] * 2))),
    "energies that nobody asked for": (COMPARE, reply(samples=with_(SAMPLES, energy=[[BATCH] * 4]))),
    "a call that draws nothing": (
        METERED, reply(samples=with_(SAMPLES, energy=[[{**BATCH, "millijoules": 0}] + [BATCH] * 3])),
    ),
    "a time of nothing": (COMPARE, reply(samples=with_(SAMPLES, blocks=[[1, 2, 0, 4]]))),
    "switches that cannot be added up": (COMPARE, reply(samples=with_(SAMPLES, switches={"left": 3}))),
    "a state that is no number": (COMPARE, reply(samples=with_(SAMPLES, before={"power_throttled_ns": "x"}))),
    "a source too few": (SWEEP, reply(sweep={"samples": [[5, 6]]})),
    "a sample too many": (SWEEP, reply(sweep={"samples": [None, [5, 6, 7]]})),
    "counters of text": (COUNT, reply(counters={"collector": "cupti", "passes": 1, "chip": "", "cache": "", "metrics": {"m": "9"}})),
    "energy by halves": (ENERGY, reply(energy={"windows": [{"calls": 1}]})),
    "no JSON": (COMPARE, Reply(status="ok", artifacts={"samples": b"\xff"})),
    "a deep nest": (COMPARE, Reply(status="ok", artifacts={"samples": b"[" * 100_000})),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_no_sound_worker_says_is_refused(name: str) -> None:
    assert refusal(*FORGED[name]) != ""
