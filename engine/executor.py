"""What the loop asks of whoever measures: one interface, raw observations back. Judges nothing, writes no event."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..events.model import Cell, Event, Origin, RunRegistered
from ..problems.contract import Problem


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Raw artifacts by role. `status` is `ok` or the name of an infrastructure fault, which is neutral to every rule."""

    status: str
    text: str = ""
    artifacts: dict[str, bytes] = {}
    blobs: tuple[tuple[str, bytes], ...] = ()
    origin_seq: int | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Which measurement, for which cell. `purpose` (profile, floor, final:<comparison>, ...) tells apart measurements of the same ordered pair of kernels."""

    cell: Cell
    problem: Problem
    purpose: str
    seed: int = 0


class Executor(Protocol):
    """Measures kernels (`local`) or answers from a ledger's artifacts (`recorded`)."""

    name: str
    origin: Origin | None

    def facts(self) -> dict[str, str]:
        """Environment: at least `device` and `compute_capability`."""
        ...

    def check(self, registration: RunRegistered) -> None:
        """Raise BadInput for a plan that this executor cannot measure; asked before the first event is written."""
        ...

    def calibrate(self) -> Observation:
        """Artifact `calibration`."""
        ...

    def gate(self, question: Question, source: str) -> Observation:
        """Artifacts `report` and, where the kernel ran, `launches` with its blobs."""
        ...

    def compare(self, question: Question, left: str, right: str, blocks: int) -> Observation:
        """Artifact `samples`."""
        ...

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """Artifact `sweep`, one list a source."""
        ...

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Artifact `counters`; status says why where there are none."""
        ...

    def resume(self, events: list[Event]) -> None:
        """Take note of what a run that goes on has already been answered."""
        ...

    def close(self) -> None:
        """Let the device go."""
        ...
