"""Energies of the blocks of a pair: warm calls of each side, back to back, between moves of the energy counter. Sets no clock, judges nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from . import arena, switches
from .checking import deliver
from .device import AnyDevice
from .energy import Feed, Meter, counter
from .inputs import copies
from .protocol import Draw

_LEAD_IN_S, _LEAST_S, _MOST_S = 0.1, 0.3, 1.0
_CALLS = 100
"""So many calls at least in a window, as far as it may be that long: half a call that is rounded away is then half a percent."""

Batch = dict[str, int]


class Fed(Protocol):
    """A device kept busy with one call."""

    def begin(self) -> None:
        """Start from an idle device."""

    def step(self) -> int:
        """Keep it busy; the calls that have ended."""
        ...

    def pace_s(self) -> float:
        """Seconds a call since `begin`, 0 until that is known."""
        ...


class Side:
    """One kernel under the meter, on inputs of its own that stay in the caches."""

    def __init__(
        self, device: AnyDevice, run: Callable[..., Any], left: switches.State, memory: arena.Memory, one: Draw
    ) -> None:
        self._run, self._left, self._memory = run, left, memory
        self._inputs = copies(tuple(memory.at(each) for each in one.inputs))
        self._made: list[Any] = []
        with switches.strict(left):
            self._feed = Feed(device, self._call)

    def _call(self) -> None:
        self._made[:] = [self._run(*self._inputs)]

    def batch(self, read: Callable[[], int]) -> Batch:
        """Millijoules, milliseconds and calls of one window."""
        with switches.strict(self._left):
            return window(self._feed, read)

    def prove(self, one: Draw, place: int) -> None:
        """Call once more on other inputs, put where the old ones lay, and deliver that output: a kernel that only remembers its answer
        draws little, and is wrong here.
        """
        for mine, each in zip(self._inputs, one.inputs, strict=True):
            mine.copy_(self._memory.at(each))
        with switches.strict(self._left):
            self._feed.once()
        deliver(self._made.pop(), self._memory, one.outputs[place])


def window(feed: Fed, read: Callable[[], int], clock: Callable[[], float] = time.perf_counter) -> Batch:
    """One batch. Calls are the window's length by the pace of the device: batches end too rarely to be counted in so short a time."""
    feed.begin()
    meter = Meter(read, feed.step, clock)
    meter.window(_LEAD_IN_S)
    while feed.pace_s() == 0:
        meter.window(_LEAD_IN_S)
    found = meter.window(min(_MOST_S, max(_LEAST_S, _CALLS * feed.pace_s())))
    return {**found, "calls": max(1, round(found["milliseconds"] / 1000 / feed.pace_s()))}


def energies(
    device: AnyDevice,
    arms: list[tuple[Callable[..., Any], switches.State]],
    memory: arena.Memory,
    draws: tuple[Draw, ...],
    first: int,
) -> list[list[Batch]]:
    """Blocks of four batches, two draws each, as the samples are: a, b, b, a, measured as b, a, a, b where the block's number is odd."""
    read = counter(device)
    sides = [Side(device, run, left, memory, draws[0]) for run, left in arms]
    taken = [block([side.batch for side in sides], read, (first + i) % 2 == 1) for i in range(len(draws) // 2)]
    for place, side in enumerate(sides):
        side.prove(draws[-1], place)
    return taken


def block(sides: list[Callable[[Callable[[], int]], Batch]], read: Callable[[], int], swapped: bool) -> list[Batch]:
    """(a, b, b, a), whichever went first."""
    outer, inner = (1, 0) if swapped else (0, 1)
    w, x, y, z = (sides[index](read) for index in (outer, inner, inner, outer))
    return [x, w, z, y] if swapped else [w, x, y, z]
