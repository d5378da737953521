"""Two collectors on one kernel, metric by metric. Never says which of them is right."""

from __future__ import annotations

from ..events.model import CounterRow
from .artifacts import Counters


def rows(ours: Counters, theirs: Counters) -> tuple[CounterRow, ...]:
    """One row for each metric that both list, sorted by name (replay/FORMAT.md section 7)."""
    shared = sorted(ours.metrics.keys() & theirs.metrics.keys())
    return tuple(_row(name, ours.metrics[name], theirs.metrics[name]) for name in shared)


def bound(metric: str, theirs: float | None) -> float:
    """Largest accepted difference: 3 % or 1 MB for bytes, 1 % for other counts, 3 % for ratios; 0 without a second reading."""
    if theirs is None:
        return 0.0
    if not metric.endswith(".sum"):
        return 0.03 * abs(theirs)
    return max(0.03 * abs(theirs), 1_000_000.0) if "bytes" in metric else 0.01 * abs(theirs)


def _row(metric: str, ours: float | None, theirs: float | None) -> CounterRow:
    accepted = bound(metric, theirs)
    near = ours is not None and theirs is not None and abs(ours - theirs) <= accepted
    return CounterRow(
        metric=metric,
        ours=None if ours is None else float(ours),
        theirs=None if theirs is None else float(theirs),
        bound=float(accepted),
        within=near or (ours is None and theirs is None),
    )
