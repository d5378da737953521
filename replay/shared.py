"""Measurements that one arm takes from another (FORMAT.md 4, Sharing). Never derives a value from them."""

from __future__ import annotations

import msgspec
from msgspec import UnsetType

from ..events.model import Cell, HeadToHead, KernelGated, NoiseFloorMeasured, Profiled, SourcesSwept, TilesSwept
from .artifacts import Counters
from .findings import Findings
from .shelf import Shelf

Shareable = KernelGated | Profiled | NoiseFloorMeasured | TilesSwept | SourcesSwept
SHAREABLE = (KernelGated, Profiled, NoiseFloorMeasured, TilesSwept, SourcesSwept)
Place = tuple[object, ...]

# What an event has from the measurement; the rest is where it stands, or is derived from it.
_ALIKE: dict[type, tuple[str, ...]] = {
    KernelGated: ("source", "attempt", "outcome", "reason", "report", "launches"),
    Profiled: ("source", "against", "samples", "launches", "cache"),
    NoiseFloorMeasured: ("source", "samples", "interval", "floor"),
    TilesSwept: ("template", "samples", "configs", "chosen"),
    SourcesSwept: ("sources", "samples", "chosen"),
    HeadToHead: ("samples", "interval", "outcome"),
}


class Shared:
    """The measurements of one run that shares, in order of seq.

    `declined`: by the seq of a later round's own profile, that which the cell could have taken; whether it had to, its looks say.
    """

    def __init__(self, shelf: Shelf, findings: Findings) -> None:
        self._shelf, self._findings = shelf, findings
        self.declined: dict[int, tuple[int, Profiled]] = {}
        self._paid: dict[Place, list[tuple[int, Shareable]]] = {}
        self._turns: dict[tuple[Cell, Place], int] = {}
        self._compared: dict[Place, tuple[int, HeadToHead]] = {}

    def take(self, seq: int, event: Shareable) -> frozenset[str]:
        """Check where the event says that it is from, and remember it; the artifacts besides samples that are another arm's."""
        place = _place(event)
        # The noise floor of round 0 is its profile's, and takes no turn.
        floor = isinstance(event, NoiseFloorMeasured) and event.round == 0
        turn = self._turns.get((event.cell, place), 0) - (1 if floor else 0)
        taken = frozenset[str]()
        if event.origin_seq is not None:
            taken = self._check(seq, event, place, turn, floor)
        elif not floor:
            self._own(seq, event, place, turn)
            self._paid.setdefault(place, []).append((seq, event))
        if not floor:
            self._turns[event.cell, place] = turn + 1
        return taken

    def compare(self, seq: int, event: HeadToHead) -> None:
        """A comparison takes what the first one of its group measured of these very kernels."""
        place = (event.problem, event.contract, event.pool, event.repetition, event.left, event.right)
        if place not in self._compared:
            self._findings.expect(seq, "origin", None, event.origin_seq, "origin_seq, as no earlier one is of these")
            if event.samples is not None:
                self._compared[place] = (seq, event)
        else:
            paid, origin = self._compared[place]
            self._findings.expect(seq, "origin", paid, event.origin_seq, "the first of these kernels")
            self._alike(seq, origin, event, _ALIKE[HeadToHead])

    def _own(self, seq: int, event: Shareable, place: Place, turn: int) -> None:
        """An arm measures anew only what it cannot take, so that it cannot choose between what it sees and another try."""
        others = [entry for entry in self._paid.get(place, []) if entry[1].cell != event.cell]
        if not 0 <= turn < len(others):
            return
        paid, origin = others[turn]
        if isinstance(event, KernelGated) and isinstance(origin, KernelGated) and event.attempt != origin.attempt:
            return  # a gate's seed goes by its attempt
        if isinstance(event, Profiled) and isinstance(origin, Profiled) and event.round > 0:
            self.declined[seq] = (paid, origin)
            return
        self._findings.add(seq, "origin", f"what event {paid} measured of these kernels", "measured anew")

    def _check(self, seq: int, event: Shareable, place: Place, turn: int, floor: bool) -> frozenset[str]:
        others = [entry for entry in self._paid.get(place, []) if entry[1].cell != event.cell]
        if not 0 <= turn < len(others):
            self._findings.add(seq, "origin", "measurements of its own, as other arms have no more", event.origin_seq)
            return frozenset()
        paid, origin = others[turn]
        self._findings.expect(seq, "origin", paid, event.origin_seq, f"number {turn + 1} of these kernels")
        names = ("source", "samples") if floor else _ALIKE[type(event)]
        self._alike(seq, origin, event, names)
        if isinstance(event, Profiled) and isinstance(origin, Profiled):
            return self._read(seq, origin, event)
        return frozenset()

    def _read(self, seq: int, origin: Profiled, event: Profiled) -> frozenset[str]:
        """Counters and extras are the origin's, but for counters with a metric that those lack, and for other roles."""
        theirs, ours = _extras(origin), _extras(event)
        both = sorted(theirs.keys() & ours.keys())
        due, found = [theirs[role] for role in both], [ours[role] for role in both]
        self._findings.expect(seq, "origin", due, found, "extras")
        if event.counters != origin.counters:
            with self._findings.derivation(seq, "counters"):
                if not self._metrics(event) - self._metrics(origin):
                    self._findings.expect(seq, "origin", origin.counters, event.counters, "counters")
        return frozenset(ours[role] for role in both)

    def _metrics(self, event: Profiled) -> frozenset[str]:
        return frozenset() if event.counters is None else frozenset(self._shelf.json(event.counters, Counters).metrics)

    def _alike(self, seq: int, origin: object, event: object, names: tuple[str, ...]) -> None:
        due, found = [getattr(origin, name) for name in names], [getattr(event, name) for name in names]
        self._findings.expect(seq, "origin", due, found, ", ".join(names))


def _extras(event: Profiled) -> dict[str, str]:
    return {} if isinstance(event.extras, UnsetType) else event.extras


def _place(event: Shareable) -> Place:
    """The group of the cell, and what was measured."""
    cell = event.cell
    group = (cell.problem, cell.contract, cell.pool, cell.repetition)
    match event:
        case KernelGated():
            return (*group, "gate", event.source)
        case TilesSwept():
            return (*group, "sweep", event.template, msgspec.json.encode(event.configs, order="deterministic"))
        case SourcesSwept():
            return (*group, "sources", *event.sources)
        case NoiseFloorMeasured() if event.round > 0:
            return (*group, "floor", event.source)
        case Profiled():
            return (*group, "profile", event.against, event.source)
        case _:
            return (*group, "profile", event.source, event.source)
