"""The `triton` generator: turns tiles, warps, stages, grid order and precision of any Triton source, a sweep a round. Knows no problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import msgspec

from ...events.errors import BadInput
from ...problems.sources import Precision, precision_of
from .base import Asked, Candidate
from .triton_rewrite import has_dot, plain_grids, turned, with_dots
from .triton_source import Knob, Reading, read

MOST_SOURCES = 16
_HALF, _SAME, _TWICE, _FOUR = 0.5, 1.0, 2.0, 4.0
_LIMITS = {"tile": (1, 8192), "warps": (1, 16), "stages": (1, 6), "group": (1, 64)}
_SMALLEST_DOT_TILE = 16


class Axes(msgspec.Struct, frozen=True, kw_only=True):
    """What a prescription may turn: factors of the tiles (all together, and each alone) and of the warps, numbers of stages (None: as
    they are), and rows walked together (None: as they are; a swizzle where the grid is plain, else the source's own group).
    """

    tiles: tuple[float, ...] = (_SAME,)
    warps: tuple[float, ...] = (_SAME,)
    stages: tuple[int | None, ...] = (None,)
    groups: tuple[int | None, ...] = (None,)


_MORE_PER_THREAD = Axes(tiles=(_SAME, _TWICE, _FOUR), warps=(_SAME, _HALF, 0.25))
_LATENCY = Axes(stages=(None, 2, 3, 4, 5), warps=(_SAME, _HALF, _TWICE))
_REUSE = Axes(tiles=(_SAME, _TWICE), warps=(_SAME, _TWICE), groups=(None, 4, 8, 16))
_SMALLER = Axes(tiles=(_HALF, 0.25), warps=(_SAME, _HALF), stages=(None, 4))
_SHAPE = Axes(tiles=(_SAME, _TWICE), warps=(_SAME, _HALF, _TWICE, _FOUR))
AXES = {
    "coalesce": Axes(tiles=(_SAME, _TWICE, _FOUR), warps=(_SAME, _HALF, _TWICE)),
    "reduce_registers": Axes(tiles=(_SAME, _HALF), warps=(_SAME, _TWICE, _FOUR), stages=(None, 2)),
    "tile": _REUSE,
    "keep_in_l2": _REUSE,
    "less_traffic": _REUSE,
    "less_of_both": _REUSE,
    "hide_latency": _LATENCY,
    "async_copy": _LATENCY,
    "remove_stall": _LATENCY,
    "vectorize": _MORE_PER_THREAD,
    "instruction_parallelism": _MORE_PER_THREAD,
    "independent_chains": _MORE_PER_THREAD,
    "fewer_instructions": _MORE_PER_THREAD,
    "split_work": _SMALLER,
    "smaller_blocks": _SMALLER,
    "less_shared": Axes(tiles=(_SAME, _HALF), stages=(1, 2, None)),
    "larger_blocks": _SHAPE,
    "fit_blocks": _SHAPE,
    "even_warps": _SHAPE,
    "fewer_barriers": Axes(warps=(_HALF, 0.25)),
    "wgmma": Axes(tiles=(_TWICE, _FOUR), warps=(_SAME, _TWICE), stages=(None, 3, 4)),
}
PRECISIONS: dict[str, Precision] = {"enable_tf32": "tf32", "split_products": "tf32x3"}
"""What a dot is computed in by prescription: the first where the contract allows it, the second where it does not."""


class TritonGenerator:
    """Serves the prescriptions of AXES, TF32 where the contract allows it, and dots split into three of TF32 where it does not."""

    name = "triton"

    def serves(self, asked: Asked) -> bool:
        """By the prescription and the contract."""
        if asked.prescription in PRECISIONS:
            return (asked.contract == "fp32-strict") == (PRECISIONS[asked.prescription] == "tf32x3")
        return asked.prescription in AXES

    def propose(self, asked: Asked) -> Candidate | None:
        """The sources of a sweep, cheapest first; None where there is nothing to turn."""
        if not self.serves(asked):
            return None
        if asked.prescription in PRECISIONS:
            return _candidate(asked, [with_dots(asked.source, PRECISIONS[asked.prescription])])
        reading = read(_held(asked.source, asked.contract))
        return None if reading is None else _candidate(asked, variants(reading, AXES[asked.prescription]))


def _held(source: str, contract: str) -> str:
    """Under the strict contract no dot is left to Triton's own choice, which is TF32; one that is split stays so."""
    if contract != "fp32-strict" or _splits(source):
        return source
    return with_dots(source, "ieee") or source


def _splits(source: str) -> bool:
    try:
        return precision_of(source) == "tf32x3"
    except BadInput:  # no precision line: the dots alone say it
        return '"tf32x3"' in source


def _candidate(asked: Asked, sources: Sequence[str | None]) -> Candidate | None:
    """Those that differ from the source and from one another."""
    fresh = [source for source in dict.fromkeys(sources) if source is not None and source != asked.source]
    if not fresh:
        return None
    return Candidate(
        sources=tuple(fresh[:MOST_SOURCES]), note=f"{asked.prescription}: {len(fresh[:MOST_SOURCES])} sources"
    )


def variants(reading: Reading, axes: Axes) -> list[str]:
    """At most MOST_SOURCES sources that the axes give within the limits of a launch: those with the fewest changes, cheapest first."""
    plain = plain_grids(reading)
    near = sorted(_settings(reading, axes, bool(plain)), key=lambda setting: (setting.changes, setting.cost))
    made: dict[str, tuple[float, ...]] = {}
    for setting in near:
        if len(made) < MOST_SOURCES and setting.changes:
            made.setdefault(turned(reading, setting.values, setting.group, plain), setting.cost)
    return sorted(made, key=lambda source: made[source])


class _Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Knobs by their place at other values, and the rows that a plain grid is walked in."""

    values: dict[int, int]
    group: int | None
    cost: tuple[float, ...]

    @property
    def changes(self) -> int:
        return len(self.values) + (self.group is not None)


def _settings(reading: Reading, axes: Axes, plain: bool) -> Iterator[_Setting]:
    dot = has_dot(reading)
    for tiles, warps, stages, group in product(_tilings(reading, axes), axes.warps, axes.stages, axes.groups):
        values = dict[int, int]()
        for place, knob in enumerate(reading.knobs):
            value = _value(knob, tiles.get(place, _SAME), warps, stages, None if plain else group)
            if value not in (None, knob.value):
                values[place] = value or 0
        if all(_fits(reading.knobs[place], value, dot) for place, value in values.items()):
            yield _Setting(values=values, group=group if plain else None, cost=_cost(reading, values))


def _tilings(reading: Reading, axes: Axes) -> Iterator[dict[int, float]]:
    """Factors of the tiles by their place: of all, then of one alone."""
    places = [place for place, knob in enumerate(reading.knobs) if knob.kind == "tile"]
    for factor in axes.tiles:
        yield dict.fromkeys(places, factor)
    for factor in axes.tiles:
        if factor != _SAME and len(places) > 1:
            yield from ({place: factor} for place in places)


def _value(knob: Knob, tile: float, warps: float, stages: int | None, group: int | None) -> int | None:
    """What a knob is turned to; None where it stays."""
    if knob.kind in ("tile", "warps"):
        return int(knob.value * (tile if knob.kind == "tile" else warps))
    return stages if knob.kind == "stages" else group


def _fits(knob: Knob, value: int, dot: bool) -> bool:
    """Within the limits of its kind; where there is a dot, no tile that could hold one gets too small for it."""
    least, most = _LIMITS[knob.kind]
    if knob.kind == "tile" and dot and knob.value >= _SMALLEST_DOT_TILE:
        least = _SMALLEST_DOT_TILE
    return least <= value <= most


def _cost(reading: Reading, values: dict[int, int]) -> tuple[float, ...]:
    """Warps, then stages times the product of the tiles: in this order a sweep takes the first among equals."""
    now = [values.get(place, knob.value) for place, knob in enumerate(reading.knobs)]
    kinds = [knob.kind for knob in reading.knobs]
    held, warps = 1.0, 0
    for kind, value in zip(kinds, now, strict=True):
        held *= value if kind in ("tile", "stages") else 1
        warps = max(warps, value) if kind == "warps" else warps
    return (float(warps), held)
