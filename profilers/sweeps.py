"""The choice among the configurations of a sweep. Never compares with the incumbent: the round's own samples do that."""

from __future__ import annotations

from .artifacts import Sweep
from .intervals import lower_median


def choose(sweep: Sweep, margin: float) -> int | None:
    """Index of the first configuration whose lower median is within `margin` of the smallest; None where none ran.

    Configurations are registered cheapest first, so that noise does not choose among equals.
    """
    ran = [(lower_median(times), index) for index, times in enumerate(sweep.samples) if times is not None]
    if not ran:
        return None
    limit = min(ran)[0] * (1 + margin)
    return next(index for time, index in ran if time <= limit)
