"""Nsight Compute's wide CSV (`--csv --page raw`) as numbers per kernel. Never runs ncu or makes a missing value 0.

Reads what `LC_ALL=C ncu --csv --page raw --print-units base` prints, with a program's own output around it. Durations
come out in ns, sizes in bytes, rates per second, whatever the unit row says.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..events.errors import ToolFailed
from .units import number, unit_factor

Obstacle = Literal["permission", "no_kernels", "unknown_metric", "busy"]

_OBSTACLES: tuple[tuple[str, Obstacle], ...] = (
    ("ERR_NVGPUCTRPERM", "permission"),
    ("Failed to find metric", "unknown_metric"),
    ("No kernels were profiled", "no_kernels"),
    ("driver resource was unavailable", "busy"),
)
_PASSES = re.compile(r"- (\d+) pass(?:es)?\b")


class Kernel(NamedTuple):
    """One profiled launch: name and compute capability as printed, and metrics in base units; None = unknown."""

    name: str
    capability: str
    metrics: dict[str, float | None]


class Report(NamedTuple):
    """All launches in order, the passes that the busiest one took, and the lines that were no CSV."""

    kernels: tuple[Kernel, ...]
    passes: int
    notes: tuple[str, ...]


def obstacle(text: str) -> Obstacle | None:
    """What kept ncu from profiling, as its messages say; None where they name nothing known."""
    return next((kind for phrase, kind in _OBSTACLES if phrase in text), None)


def parse(text: str, metrics: Sequence[str]) -> Report:
    """The asked metrics of every launch. A metric without a column is None; columns are found by name alone.

    Raises ToolFailed: no header, the long layout, no unit row, no kernel, a row of another width, a number or a unit
    that cannot be read.
    """
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        raise ToolFailed(
            f'ncu CSV: expected a header line that begins with "ID", found none in {len(lines)} lines: {_head(lines)}'
        )
    header = _cells(lines[start])
    if "Metric Name" in header:
        raise ToolFailed("ncu CSV: the long layout (a Metric Name column) is not supported: run ncu with --page raw")
    rows, rest = _rows(lines[start + 1 :], len(header))
    if not rows or rows[0][0] != "":
        raise ToolFailed("ncu CSV: expected a row of units after the header, with an empty ID: run ncu with --page raw")
    if not rows[1:]:
        raise ToolFailed("ncu CSV: a header and units but no kernel: widen the profiled range or the kernel filter")
    factors = _factors(header, rows[0], metrics)
    kernels = tuple(_kernel(dict(zip(header, row, strict=True)), metrics, factors) for row in rows[1:])
    notes = (*lines[:start], *rest)
    return Report(kernels, max((int(n) for note in notes for n in _PASSES.findall(note)), default=1), notes)


def _head(lines: list[str]) -> str:
    return " / ".join(lines[:3])[:200] or "(nothing)"


def _cells(line: str) -> list[str]:
    return next(csv.reader([line], strict=True))


def _rows(lines: list[str], width: int) -> tuple[list[list[str]], list[str]]:
    """Rows of the table (units first), and every other line: messages of ncu and prints of the program."""
    rows, rest = [], []
    for line in lines:
        if not re.match(r'"\d*",', line):
            rest.append(line)
            continue
        try:
            row = _cells(line)
        except csv.Error as error:
            raise ToolFailed(f"ncu CSV: {error} in the row {line[:120]!r}: output cut or interleaved") from None
        if len(row) != width:
            raise ToolFailed(
                f"ncu CSV: expected {width} fields, found {len(row)} in {line[:120]!r}: output cut or interleaved"
            )
        rows.append(row)
    return rows, rest


def _factors(header: list[str], units: list[str], metrics: Sequence[str]) -> dict[str, float]:
    found = dict(zip(header, units, strict=True))
    return {name: unit_factor(found[name], name) for name in metrics if name in found}


def _kernel(cells: dict[str, str], metrics: Sequence[str], factors: dict[str, float]) -> Kernel:
    values: dict[str, float | None] = dict.fromkeys(metrics)
    for name, factor in factors.items():
        value = number(cells[name], name)
        values[name] = None if value is None else value * factor
    return Kernel(cells.get("Kernel Name", ""), cells.get("CC", ""), values)
