"""Remarks on the sources of a run's best kernels, as lines for people. No verdict rests on them."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from ..events.errors import UnreadableLedger
from ..profilers import artifacts as shapes
from ..profilers.screen import remarks
from ..projections.ablation import best_kernels
from ..projections.runs import RunView
from .report import plain

_AT_MOST = 8


def print_remarks(view: RunView, read: Callable[[str], bytes], console: Console) -> None:
    """What to look at in each best kernel; nothing for a run whose best kernels leave nothing to remark. `read`: artifact by digest."""
    absent = 0
    for best in best_kernels(view):
        state = next(state for state in view.cells.values() if state.cell == best.cell)
        name = state.launches.get(best.source)
        listed = None if name is None else shapes.decode(shapes.Launches, read(name))
        try:
            text = read(best.source).decode("utf-8", "replace")
        except UnreadableLedger:  # withheld, or lost: replay says which
            absent += 1
            continue
        found = remarks(text, listed)
        if found:
            console.print(f"look at {plain(f'{best.problem} {best.contract}')} (a warning, no verdict):")
        for remark in found[:_AT_MOST]:
            console.print(f"  line {remark.line}: {plain(remark.kind)}: {plain(remark.what)}")
        if len(found) > _AT_MOST:
            console.print(f"  and {len(found) - _AT_MOST} more")
    if absent:
        console.print(
            f"not looked at: {absent} best kernels whose texts this ledger does not give (gpusolver replay says why)"
        )
