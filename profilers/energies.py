"""What a block of samples says of two kernels under an objective: energy a call, or the rise that it causes. Judges nothing and never reads a meter."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

from msgspec import UnsetType

from ..events.model import Heat, Objective
from .artifacts import Batch, EnergyBlock, Samples

_DIGITS = Context(prec=80)
"""So many that how a rise is written down cannot show in the binary64 that its ratio is rounded to, on any machine."""


def added(one: Batch, other: Batch) -> Batch:
    """Both batches of a side as one."""
    return Batch(
        millijoules=one.millijoules + other.millijoules,
        calls=one.calls + other.calls,
        milliseconds=one.milliseconds + other.milliseconds,
    )


def sides(block: EnergyBlock) -> tuple[Batch, Batch]:
    """(A, B) of one block, each of two batches."""
    a1, b1, b2, a2 = block
    return added(a1, a2), added(b1, b2)


def energy_ratio(a: Batch, b: Batch) -> float:
    """Millijoules a call of A over those of B: one correctly rounded division of whole numbers."""
    return (a.millijoules * b.calls) / (b.millijoules * a.calls)


def rise(heat: Heat, batch: Batch) -> Decimal:
    """Kelvin over the ambient at the end of a call, in the periodic steady state: the power of the batch for the time of a call, then
    `idle_w` for the rest of the period. A kernel that cannot keep up with the rate is on all the time, and none draws less than idle.

    Each stage obeys tau dT/dt = R P - T, and the ends of calls are the peaks of all of them: T = R (P0 + (P1 - P0) s) with
    s = (1 - e^(-on/tau)) / (1 - e^(-period/tau)).
    """
    with localcontext(_DIGITS):
        period = 1 / Decimal(heat.calls_per_s)
        on = min(period, Decimal(batch.milliseconds) / (1000 * batch.calls))
        idle = Decimal(heat.idle_w)
        more = max(Decimal(0), Decimal(batch.millijoules) / batch.milliseconds - idle)
        total = Decimal(0)
        for stage in heat.stages:
            tau = Decimal(stage.tau_s)
            share = (1 - (-on / tau).exp()) / (1 - (-period / tau).exp())
            total += Decimal(stage.k_per_w) * (idle + more * share)
        return total


def heat_ratio(heat: Heat, a: Batch, b: Batch) -> float:
    """Rise of A over that of B, rounded once."""
    with localcontext(_DIGITS):
        return float(rise(heat, a) / rise(heat, b))


def objective_ratios(samples: Samples, objective: Objective) -> list[float]:
    """One ratio a block, in order of measurement; above 1 says that B draws (heats) less. Empty where there are no energies."""
    every, heat = [sides(block) for block in samples.energy or ()], objective.heat
    if isinstance(heat, UnsetType):
        return [energy_ratio(a, b) for a, b in every]
    return [heat_ratio(heat, a, b) for a, b in every]


def warm_b(samples: Samples) -> tuple[int, int] | None:
    """(milliseconds, calls) of B over all its batches; None without energies."""
    batches = [batch for _, b1, b2, _ in samples.energy or () for batch in (b1, b2)]
    return (sum(one.milliseconds for one in batches), sum(one.calls for one in batches)) if batches else None


def keeps_up(samples: Samples, objective: Objective) -> bool:
    """Whether B can be called as often as the objective's heat asks; yes where there is none."""
    warm = warm_b(samples)
    if isinstance(objective.heat, UnsetType) or warm is None:
        return True
    with localcontext(_DIGITS):
        return warm[0] * Decimal(objective.heat.calls_per_s) <= 1000 * warm[1]
