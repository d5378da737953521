"""What the measurements of a run share: a clock, a chip, samples named once, an origin. Never derives a value from them."""

from __future__ import annotations

from typing import Any

from ..events.model import (
    DeviceCalibrated,
    Event,
    HeadToHead,
    KernelGated,
    NoiseFloorMeasured,
    Origin,
    Profiled,
    RunRegistered,
    TilesSwept,
)
from .artifacts import Counters, Samples, Shelf
from .findings import Findings
from .runs import RunEvents

MEASURING = (DeviceCalibrated, TilesSwept, KernelGated, Profiled, NoiseFloorMeasured, HeadToHead)
Named = dict[Any, tuple[int, Event]]


class Measured:
    """One ledger's measurements, run by run. What a run measured itself is new to the whole ledger."""

    def __init__(self, shelf: Shelf, findings: Findings) -> None:
        self._shelf, self._findings = shelf, findings
        self._own: Named = {}

    def check(self, run: RunEvents, registered: RunRegistered) -> str | None:
        """Check the run's measurements in order of seq; its clock, None where it has no samples."""
        items = [*run.devices, *run.head_to_heads, *(item for cell in run.cells.values() for item in cell)]
        origins: Named = {}
        samples: Named = self._own if registered.origin is None else {}
        clocks: dict[str, int] = {}
        chips: dict[str, int] = {}
        for seq, event in sorted(items, key=lambda item: item[0]):
            if isinstance(event, MEASURING):
                self._origin(seq, event, registered.origin, origins)
            if isinstance(event, (Profiled, NoiseFloorMeasured, HeadToHead)) and event.samples is not None:
                with self._findings.derivation(seq, "samples"):
                    seen = self._shelf.json(event.samples, Samples)
                    self._samples(seq, event, seen, samples, registered.statistics.blocks)
                    self._same(seq, "clock", clocks, seen.clock)
            if isinstance(event, Profiled) and event.counters is not None:
                with self._findings.derivation(seq, "counters"):
                    counters = self._shelf.json(event.counters, Counters)
                    if counters.read():
                        self._same(seq, "counters' chip", chips, counters.chip)
        return next(iter(clocks), None)

    def _origin(self, seq: int, event: Event, origin: Origin | None, named: Named) -> None:
        """A recorded measurement says where in the origin it stands, an own one does not; none is taken twice."""
        at: int | None = getattr(event, "origin_seq")  # noqa: B009 - every event of MEASURING has one
        if origin is None or (isinstance(event, HeadToHead) and event.outcome == "identical"):
            self._findings.expect(seq, "origin", None, at, "origin_seq")
        elif at is None or not 1 <= at <= origin.events:
            self._findings.add(seq, "origin", f"origin_seq from 1 to {origin.events}", at)
        else:
            self._once(seq, event, "origin", at, named)

    def _samples(self, seq: int, event: Event, seen: Samples, named: Named, registered: int) -> None:
        if len(seen.blocks) > registered:
            self._findings.add(seq, "samples", f"at most the {registered} blocks registered", len(seen.blocks))
        self._once(seq, event, "samples", seen.blocks, named)

    def _once(self, seq: int, event: Event, kind: Any, what: object, named: Named) -> None:
        before, earlier = named.setdefault(what, (seq, event))
        if before != seq and not _start_pair(earlier, event):
            self._findings.add(seq, kind, "a measurement of its own", f"that of event {before} again")

    def _same(self, seq: int, what: str, seen: dict[str, int], value: str) -> None:
        if seen and value not in seen:
            self._findings.add(seq, "samples", f"one {what} in a run: {next(iter(seen))}", value)
        seen.setdefault(value, seq)


def _start_pair(one: Event, other: Event) -> bool:
    """Round 0 times the start against itself once: that is its profile and its noise floor."""
    if not isinstance(one, Profiled) or not isinstance(other, NoiseFloorMeasured):
        return False
    return one.cell == other.cell and one.round == other.round == 0 and one.samples == other.samples
