"""What the measurements of a run share: a clock, a chip, samples named once, an origin. Never derives a value from them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UnsetType

from ..events.model import (
    DeviceCalibrated,
    Event,
    HeadToHead,
    KernelExamined,
    KernelGated,
    NoiseFloorMeasured,
    Origin,
    PairCompared,
    Profiled,
    RunRegistered,
    SourcesSwept,
    Statistics,
    TilesSwept,
)
from .artifacts import Counters, Samples, Sweep
from .bounds import PAIRS_A_BLOCK
from .exam_grammar import ExamEvents
from .extras import Warm, unknown_roles
from .findings import Findings
from .runs import RunEvents
from .shared import SHAREABLE, Shared
from .shelf import Shelf

LEAST_SWEPT = 20
"""A sweep of fewer samples may by chance be another one's again: times come in ticks of the clock."""
MEASURING = (DeviceCalibrated, TilesSwept, SourcesSwept, KernelGated, Profiled, NoiseFloorMeasured, HeadToHead)
Named = dict[Any, tuple[int, Profiled | None]]
"""What was named, by its fingerprint: by which event, and that itself where it is the profile of a round 0."""


class Measured:
    """One ledger's measurements, run by run, then by examination. What was not recorded elsewhere is new to the whole ledger.

    `declined`: of the run checked last, as in `Shared`.
    """

    def __init__(self, shelf: Shelf, findings: Findings) -> None:
        self._shelf, self._findings = shelf, findings
        self.declined: dict[int, tuple[int, Profiled]] = {}
        self._own: Named = {}
        self._recorded: list[Named] = []

    def check(self, run: RunEvents, registered: RunRegistered) -> str | None:
        """Check the run's measurements in order of seq; its clock, None where it has no samples."""
        items = [*run.devices, *run.head_to_heads, *(item for cell in run.cells.values() for item in cell)]
        origins: Named = {}
        samples: Named = self._own
        if registered.origin is not None:
            samples = {}
            self._recorded.append(samples)
        clocks: dict[str, int] = {}
        chips: dict[str, int] = {}
        shared = Shared(self._shelf, self._findings) if registered.shares is True else None
        for seq, event in sorted(items, key=lambda item: item[0]):
            taken, theirs = False, frozenset[str]()
            if shared is not None and isinstance(event, SHAREABLE):
                theirs = shared.take(seq, event)
                taken = event.origin_seq is not None
            elif shared is not None and isinstance(event, HeadToHead):
                shared.compare(seq, event)
                taken = event.origin_seq is not None
            elif isinstance(event, MEASURING):
                self._origin(seq, event, registered.origin, origins)
            if isinstance(event, (Profiled, NoiseFloorMeasured, HeadToHead)) and event.samples is not None:
                with self._findings.derivation(seq, "samples"):
                    seen = self._shelf.json(event.samples, Samples)
                    self._samples(seq, event, seen, {} if taken else samples, registered.statistics)
                    self._same(seq, "clock", clocks, seen.clock)
            if isinstance(event, (TilesSwept, SourcesSwept)) and not taken:
                with self._findings.derivation(seq, "samples"):
                    self._sweep(seq, event, self._shelf.json(event.samples, Sweep), samples)
            if isinstance(event, Profiled):
                self._counters(seq, event.counters, chips)
                if not isinstance(event.extras, UnsetType):
                    named = {} if event.extras.get("warm") in theirs else samples
                    self._extras(seq, event, event.extras, named, clocks)
        self.declined = {} if shared is None else shared.declined
        return next(iter(clocks), None)

    def check_examination(self, exam: ExamEvents, statistics: Statistics) -> str | None:
        """The same for an examination, whose samples no other event of the ledger names."""
        clocks: dict[str, int] = {}
        chips: dict[str, int] = {}
        for seq, event in exam.body:
            if isinstance(event, (KernelExamined, PairCompared)) and event.samples is not None:
                with self._findings.derivation(seq, "samples"):
                    seen = self._shelf.json(event.samples, Samples)
                    self._samples(seq, event, seen, self._own, statistics)
                    self._not_recorded(seq, seen)
                    self._same(seq, "clock", clocks, seen.clock)
            if isinstance(event, KernelExamined):
                self._counters(seq, event.counters, chips)
                if event.extras:
                    self._extras(seq, event, event.extras, self._own, clocks)
        return next(iter(clocks), None)

    def _not_recorded(self, seq: int, seen: Samples) -> None:
        for named in self._recorded:
            before = named.get(_fingerprint(seen.blocks))
            if before is not None:
                self._findings.add(seq, "samples", "a measurement of its own", f"that of event {before[0]}")

    def _counters(self, seq: int, named: str | None, chips: dict[str, int]) -> None:
        if named is not None:
            with self._findings.derivation(seq, "counters"):
                counters = self._shelf.json(named, Counters)
                if counters.read():
                    self._same(seq, "counters' chip", chips, counters.chip)

    def _extras(self, seq: int, event: Event, extras: dict[str, str], named: Named, clocks: dict[str, int]) -> None:
        """Known roles, at least one; warm samples are a measurement like others, but of as many blocks as they need."""
        if not extras:
            self._findings.add(seq, "extras", "a role, or no extras at all", "an empty mapping")
        for role in unknown_roles(extras):
            self._findings.add(seq, "extras", "a role of FORMAT.md section 5", role)
        if "warm" in extras:
            with self._findings.derivation(seq, "warm samples"):
                warm = self._shelf.json(extras["warm"], Warm)
                self._once(seq, event, "samples", _fingerprint(warm.blocks), named)
                self._same(seq, "clock", clocks, warm.clock)

    def _origin(self, seq: int, event: Event, origin: Origin | None, named: Named) -> None:
        """A recorded measurement says where in the origin it stands, an own one does not; none is taken twice."""
        at: int | None = getattr(event, "origin_seq")  # noqa: B009 - every event of MEASURING has one
        if origin is None or (isinstance(event, HeadToHead) and event.outcome == "identical"):
            self._findings.expect(seq, "origin", None, at, "origin_seq")
        elif at is None or not 1 <= at <= origin.events:
            self._findings.add(seq, "origin", f"origin_seq from 1 to {origin.events}", at)
        else:
            self._once(seq, event, "origin", at, named)

    def _samples(self, seq: int, event: Event, seen: Samples, named: Named, registered: Statistics) -> None:
        if len(seen.blocks) > registered.blocks:
            self._findings.add(seq, "samples", f"at most the {registered.blocks} blocks registered", len(seen.blocks))
        if seen.outputs is not None and seen.outputs.pairs:
            due = PAIRS_A_BLOCK * len(seen.blocks)
            self._findings.expect(seq, "samples", due, len(seen.outputs.pairs), "pairs of outputs")
        self._once(seq, event, "samples", _fingerprint(seen.blocks), named)
        if seen.energy is not None:
            # Apart from the times: energies of one measurement beside the times of another are two measurements' worth of one.
            self._once(seq, event, "samples", _fingerprint(seen.energy), named)
            if isinstance(registered.objective, UnsetType):
                self._findings.add(seq, "samples", "times alone, for verdicts are by latency", "energies")

    def _sweep(self, seq: int, event: Event, seen: Sweep, named: Named) -> None:
        """A sweep is measured for its round alone, whatever its configurations are."""
        if sum(len(times or ()) for times in seen.samples) >= LEAST_SWEPT:
            self._once(seq, event, "samples", _fingerprint(seen.samples), named)

    def _once(self, seq: int, event: Event, kind: Any, what: object, named: Named) -> None:
        start = event if isinstance(event, Profiled) and event.round == 0 else None
        before, earlier = named.setdefault(what, (seq, start))
        if before != seq and not _start_pair(earlier, event):
            self._findings.add(seq, kind, "a measurement of its own", f"that of event {before} again")

    def _same(self, seq: int, what: str, seen: dict[str, int], value: str) -> None:
        if seen and value not in seen:
            self._findings.add(seq, "samples", f"one {what} in a run: {next(iter(seen))}", value)
        seen.setdefault(value, seq)


def _fingerprint(samples: Sequence[object]) -> bytes:
    """What stands for samples in memory: those of a whole ledger are compared, and are not kept."""
    return sha256(msgspec.json.encode(samples)).digest()


def _start_pair(one: Profiled | None, other: Event) -> bool:
    """Round 0 times the start against itself once: that is its profile and its noise floor."""
    if one is None or not isinstance(other, NoiseFloorMeasured):
        return False
    return one.cell == other.cell and one.round == other.round == 0 and one.samples == other.samples
