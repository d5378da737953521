"""Executor that answers from the artifacts of a recorded ledger and refuses what it has not seen. Measures nothing."""

from __future__ import annotations

import pathlib
from collections import defaultdict

import msgspec

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..events.model import (
    Cell,
    DeviceCalibrated,
    Event,
    HeadToHead,
    KernelGated,
    NoiseFloorMeasured,
    Origin,
    Profiled,
    RoundJudged,
    RunRegistered,
    TilesSwept,
)
from ..events.reader import LedgerReader
from .executor import Observation, Question

FAULTS = ("worker_lost", "timeout", "request_failed", "context_lost")


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded measurement: where it stands, in which cell it was made, and its artifacts' digests by role."""

    seq: int
    cell: Cell | None
    status: str
    digests: dict[str, str]


Key = tuple[str, ...]


class RecordedExecutor:
    """Answers by ordered pair of kernels, problem, contract, purpose and occurrence; prefers the cell asked for."""

    name = "recorded"

    def __init__(self, path: pathlib.Path) -> None:
        self._reader = LedgerReader(path)
        self._path = path
        self._index: dict[Key, list[Recording]] = defaultdict(list)
        self._used: dict[tuple[Cell, Key], int] = defaultdict(int)
        self._environment: dict[str, str] = {}
        for recorded in self._reader.recorded():
            self._take(recorded.seq, recorded.event)
        if not self._index or ("calibrate",) not in self._index:
            raise BadInput(f"{path}: expected a ledger with measurements, found none. Record one with --device cuda.")
        events, head = self._reader.head()
        self.origin: Origin | None = Origin(head=head, events=events)

    def facts(self) -> dict[str, str]:
        """The environment that the measurements were made in."""
        return self._environment

    def calibrate(self) -> Observation:
        """The first recorded calibration."""
        return self._observation(self._index[("calibrate",)][0])

    def gate(self, question: Question, source: str) -> Observation:
        """The recorded gate report of this source."""
        return self._answer(question, ("gate", *_scope(question), _digest(source)))

    def compare(self, question: Question, left: str, right: str, blocks: int) -> Observation:
        """Recorded samples of this ordered pair, of the same purpose where there are some."""
        pair = (*_scope(question), _digest(left), _digest(right))
        exact: Key = ("compare", question.purpose, *pair)
        return self._answer(question, exact if exact in self._index else ("compare", "", *pair))

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """The recorded sweep of this template over as many configurations."""
        return self._answer(question, ("sweep", *_scope(question), _digest(template), str(len(sources))))

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Recorded counters of this source."""
        return self._answer(question, ("count", *_scope(question), _digest(source)))

    def close(self) -> None:
        """Close the recording."""
        self._reader.close()

    def resume(self, events: list[Event]) -> None:
        """Count the answers that a resumed ledger already holds, so that the next occurrence follows them."""
        for event in events:
            cell = getattr(event, "cell", None)
            for key, _ in _keys(event):
                if isinstance(cell, Cell) and key[:2] != ("compare", ""):
                    self._used[(cell, key)] += 1

    def _take(self, seq: int, event: Event) -> None:
        if isinstance(event, RunRegistered) and not self._environment:
            self._environment = event.environment
        for key, digests in _keys(event):
            cell = getattr(event, "cell", None)
            self._index[key].append(Recording(seq=seq, cell=cell, status=_status(event), digests=digests))

    def _answer(self, question: Question, key: Key) -> Observation:
        found = self._index.get(key, [])
        own = [r for r in found if _same_place(r.cell, question.cell)] or found
        turn = self._used[(question.cell, key)]
        if turn >= len(own):
            raise BadInput(
                f"{self._path}: {key[0]} of {question.problem.name} ({question.cell.contract}, {question.purpose}), occurrence {turn + 1}: "
                f"expected a recorded measurement, found {len(own)}. A recording answers only what was measured: "
                "use the recorded problems, arms and rounds, or measure with --device cuda."
            )
        self._used[(question.cell, key)] += 1
        return self._observation(own[turn])

    def _observation(self, recording: Recording) -> Observation:
        if recording.status != "ok":
            return Observation(status=recording.status, text="as recorded", origin_seq=recording.seq)
        artifacts = {role: self._reader.artifact(value) for role, value in recording.digests.items()}
        return Observation(status="ok", artifacts=artifacts, blobs=self._blobs(artifacts), origin_seq=recording.seq)

    def _blobs(self, artifacts: dict[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        """Machine code and IR that a launch list refers to."""
        if "launches" not in artifacts:
            return ()
        kernels = msgspec.json.decode(artifacts["launches"])["kernels"]
        named = [(media, k[field]) for k in kernels for media, field in _BLOB_FIELDS if k.get(field)]
        return tuple((media, self._reader.artifact(value)) for media, value in dict.fromkeys(named))


_BLOB_FIELDS = (("application/x-cubin", "code"), ("text/x-ttir", "ttir"))


def _digest(source: str) -> str:
    return digest(source.encode())


def _scope(question: Question) -> tuple[str, str]:
    return question.cell.problem, question.cell.contract


def _same_place(recorded: Cell | None, asked: Cell) -> bool:
    return recorded == asked


def _status(event: Event) -> str:
    """`ok`, or the fault that a measurement ended in: it is answered as recorded, too."""
    if isinstance(event, RoundJudged):
        return event.reason
    return event.outcome if isinstance(event, HeadToHead) and event.samples is None else "ok"


def _keys(event: Event) -> list[tuple[Key, dict[str, str]]]:
    """The keys under which an event's measurements can be asked for, and their artifacts."""
    match event:
        case DeviceCalibrated():
            return [(("calibrate",), {"calibration": event.calibration})]
        case KernelGated(cell=c):
            launches = {} if event.launches is None else {"launches": event.launches}
            return [(("gate", c.problem, c.contract, event.source), {"report": event.report, **launches})]
        case TilesSwept(cell=c):
            return [
                (("sweep", c.problem, c.contract, event.template, str(len(event.configs))), {"sweep": event.samples})
            ]
        case Profiled(cell=c):
            counters = {"counters": event.counters} if event.counters else {}
            pair = _pair("profile", c.problem, c.contract, event.against, event.source, event.samples)
            return [*pair, (("count", c.problem, c.contract, event.source), counters)]
        case NoiseFloorMeasured(cell=c):
            return _pair("floor", c.problem, c.contract, event.source, event.source, event.samples)
        case HeadToHead() if event.outcome != "identical":
            purpose = f"final:{event.comparison}:{event.repetition}"
            sides = (event.problem, event.contract, event.left, event.right)
            return (
                [(("compare", purpose, *sides), {})] if event.samples is None else _pair(purpose, *sides, event.samples)
            )
        case RoundJudged(cell=c) if event.reason in FAULTS:
            return [(("compare", "profile", c.problem, c.contract, event.incumbent, event.candidate), {})]
        case _:
            return []


def _pair(
    purpose: str, problem: str, contract: str, left: str, right: str, samples: str
) -> list[tuple[Key, dict[str, str]]]:
    pair = (problem, contract, left, right)
    return [(("compare", purpose, *pair), {"samples": samples}), (("compare", "", *pair), {"samples": samples})]
