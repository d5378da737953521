"""What the loop asks of whoever measures: one interface, raw observations back. Judges nothing, writes no event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ..events.model import Cell, Event, Origin, Policy, RunRegistered, Statistics
from ..problems.contract import Problem


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Raw artifacts by role. `status` is `ok` or the name of an infrastructure fault, which is neutral to every rule."""

    status: str
    text: str = ""
    artifacts: dict[str, bytes] = {}
    blobs: tuple[tuple[str, bytes], ...] = ()
    origin_seq: int | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Which measurement, for which cell. `purpose` (profile, floor, final:<comparison>, ...) tells apart measurements of the same ordered pair of kernels.

    `energy`: samples of a pair carry the energies of their blocks.
    """

    cell: Cell
    problem: Problem
    purpose: str
    seed: int = 0
    energy: bool = False


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

    def statistics(self) -> Statistics | None:
        """The statistics that a run here must register; None where it is free to choose them."""
        ...

    def policy(self) -> Policy | None:
        """The evolution policy that a run here must register; None where it is free to choose it."""
        ...

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        """Artifact `samples` of `blocks` blocks, the first of which has index `first` among all of this pair: each has inputs of its own.

        A recording answers with all blocks that it holds, however many were asked for.
        """
        ...

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """Artifact `sweep`, one list a source; `template` is empty where the sources are no configurations of one."""
        ...

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Artifact `counters`; status says why where there are none."""
        ...

    def extra(self, question: Question, source: str, role: str) -> Observation:
        """An extra artifact under its role: timeline, warm, compiled, energy, kernels. Where it cannot be had, the status says why: never fatal."""
        ...

    def ncu(self, asked: Sequence[tuple[Question, str]], metrics: tuple[str, ...]) -> list[Observation]:
        """Per (question, source) the artifacts `counters` and `ncu_rules` by Nsight Compute, or a status with its reason."""
        ...

    def resume(self, events: list[Event]) -> None:
        """Take note of what a run that goes on has already been answered."""
        ...

    def close(self) -> None:
        """Let the device go."""
        ...
