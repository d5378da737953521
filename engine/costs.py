"""Sampled GPU seconds of every round, from the artifacts that hold the samples. Never counts a gate, a compilation or counters: they have no samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..events.model import Event, NoiseFloorMeasured, Profiled, TilesSwept, cell_stream
from ..profilers import artifacts as shapes

Read = Callable[[str], bytes]


def round_seconds(run: str, events: Iterable[Event], read: Read) -> dict[tuple[str, int], float]:
    """By (cell stream, round): the sum of the samples of profile, sweep and noise floor; of round 0 the profile's alone, which is its floor."""
    found: dict[tuple[str, int], int] = {}
    for event in events:
        match event:
            case Profiled():
                ns = _pairs(read(event.samples))
            case NoiseFloorMeasured() if event.round > 0:
                ns = _pairs(read(event.samples))
            case TilesSwept():
                sweep = shapes.decode(shapes.Sweep, read(event.samples))
                ns = sum(sum(times) for times in sweep.samples if times)
            case _:
                continue
        place = cell_stream(run, event.cell), event.round
        found[place] = found.get(place, 0) + ns
    return {place: ns / 1e9 for place, ns in found.items()}


def _pairs(content: bytes) -> int:
    return sum(sum(block) for block in shapes.decode(shapes.Samples, content).blocks)
