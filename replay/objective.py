"""Block ratios by what a run is for (FORMAT.md 6.1, Objective): times, energy a call, or heat. Never reads a ledger."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

from msgspec import UnsetType

from ..events.model import Heat, Objective, Stage, Statistics
from .artifacts import Batch, Energies, Samples

NO_ENERGIES = "no energies"
TOO_SLOW = "over the latency bound"
FALLS_BEHIND = "too slow for the call rate"
_EXACT = Context(prec=90)
"""More digits than the page asks for."""


def by_time(statistics: Statistics) -> bool:
    """Whether verdicts are by latency, so that a median is a speed."""
    return isinstance(statistics.objective, UnsetType)


def ratios(energy: Energies | None, wanted: Objective) -> tuple[float, ...]:
    """One for each block, A / B: by heat where its parameters are registered, else by energy; none where the energies are not there."""
    pairs = [(_total(a1, a2), _total(b1, b2)) for a1, b1, b2, a2 in energy or ()]
    if isinstance(wanted.heat, UnsetType):
        return tuple((a.millijoules * b.calls) / (a.calls * b.millijoules) for a, b in pairs)
    with localcontext(_EXACT):
        return tuple(float(peak_rise(wanted.heat, a) / peak_rise(wanted.heat, b)) for a, b in pairs)


def _total(*batches: Batch) -> Batch:
    return Batch(
        sum(one.millijoules for one in batches),
        sum(one.calls for one in batches),
        sum(one.milliseconds for one in batches),
    )


def peak_rise(heat: Heat, batch: Batch) -> Decimal:
    """K over the ambient at the end of a call: each stage sees the call's power with the weight of the page, and idle power with the rest."""
    with localcontext(_EXACT):
        rate, idle = Decimal(heat.calls_per_s), Decimal(heat.idle_w)
        watts = max(idle, Decimal(batch.millijoules) / Decimal(batch.milliseconds))
        duty = min(Decimal(1), rate * batch.milliseconds / (1000 * batch.calls))
        return sum((_stage(stage, watts, idle, duty, 1 / rate) for stage in heat.stages), Decimal(0))


def _stage(stage: Stage, watts: Decimal, idle: Decimal, duty: Decimal, period: Decimal) -> Decimal:
    times = period / Decimal(stage.tau_s)
    weight = ((-times * duty).exp() - 1) / ((-times).exp() - 1)
    return Decimal(stage.k_per_w) * (watts * weight + idle * (1 - weight))


def warm_right(samples: Samples) -> Batch | None:
    """All batches of B as one; None where there are none."""
    batches = [batch for block in samples.energy or () for batch in block[1:3]]
    return _total(*batches) if batches else None


def denied(wanted: Objective, samples: Samples) -> str | None:
    """Why a candidate cannot do what the objective supposes: be called so often."""
    warm = warm_right(samples)
    if warm is None or isinstance(wanted.heat, UnsetType):
        return None
    with localcontext(_EXACT):
        behind = Decimal(wanted.heat.calls_per_s) * warm.milliseconds > 1000 * warm.calls
    return FALLS_BEHIND if behind else None


def beyond_peak(samples: Samples, statistics: Statistics, floor_ns: float) -> bool:
    """Whether the warm calls of B take less than `floor_ns`, the time that the arithmetic alone needs at the data sheet's peak."""
    warm = None if isinstance(statistics.objective, UnsetType) else warm_right(samples)
    return warm is not None and 1_000_000 * warm.milliseconds / warm.calls < floor_ns
