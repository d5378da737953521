"""What a cell is derived against. Never changes while the cell is walked."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..events.model import Cell, Chip, DeviceCalibrated, EvidenceCarried, ProblemDeclared, Profiled, Rule, RunRegistered
from .shelf import Shelf


class Setting(msgspec.Struct, frozen=True):
    """What a cell is derived against: all registered before its first sample, the artifacts, and the run's clock.

    `declined`: as in `Shared`, what the run's cells measured anew though another arm had.
    """

    run: RunRegistered
    cell: Cell
    stream: str
    problem: ProblemDeclared
    device: DeviceCalibrated
    table: tuple[Rule, ...]
    shelf: Shelf
    clock: str | None
    carried: tuple[EvidenceCarried, ...] = ()
    declined: Mapping[int, tuple[int, Profiled]] = {}

    @property
    def chip(self) -> Chip:
        """The calibrated chip."""
        return self.device.chip
