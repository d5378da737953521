"""The choice among the configurations of a sweep. Never compares with the incumbent: the round's own samples do that."""

from __future__ import annotations

from .artifacts import Sweep
from .intervals import lower_median


def choose(sweep: Sweep) -> int | None:
    """Index of the configuration with the smallest lower median, the first of equals; None where none ran."""
    ran = [(lower_median(times), index) for index, times in enumerate(sweep.samples) if times is not None]
    return min(ran)[1] if ran else None
