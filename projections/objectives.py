"""Which of the kernels that a run profiled is best by latency, by energy or by heat. Measures nothing and judges no round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import exp, inf
from typing import Literal

import msgspec

from .cell import CellState
from .runs import Group, RunView, cell_state, group_of, groups

Objective = Literal["latency", "energy", "thermal"]


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage of a Foster network: a resistance (kelvin per watt) beside a capacity, which together have a time constant."""

    k_per_w: float
    tau_s: float


class Thermal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How kernels are compared by heat: all at one call rate, `load` / (a warm call of the fastest kernel), and none that takes
    longer than `bound` times the fastest. Between calls the device draws `idle_w`. ValueError for what makes no sense.

    `calls_per_s`, where it is given, is the rate instead: a run that decides by heat knows no fastest kernel beforehand.
    """

    load: float
    bound: float
    idle_w: float
    stages: tuple[Stage, ...]
    calls_per_s: float | None = None

    def __post_init__(self) -> None:
        if not (0 < self.load <= 1 <= self.bound < inf and self.idle_w >= 0 and self.stages):
            raise ValueError("expected 0 < load <= 1, bound >= 1, idle_w >= 0 and at least one stage")
        if self.calls_per_s is not None and not self.calls_per_s > 0:
            raise ValueError("expected calls_per_s > 0")
        if not all(stage.k_per_w > 0 and stage.tau_s > 0 for stage in self.stages):
            raise ValueError("expected k_per_w > 0 and tau_s > 0 in every stage")


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel: cold latency, energy of a warm call, and the peak rise over the ambient (None: too slow for rate or bound)."""

    source: str
    time_us: float
    millijoules: float
    power_w: float
    rise_k: float | None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The kernels of one group that have an energy, fastest first, and the best of them by each objective."""

    group: Group
    kernels: tuple[Standing, ...]
    best: dict[Objective, str]


def rise(stages: Iterable[Stage], idle_w: float, on_w: float, on_s: float, period_s: float) -> float:
    """Peak of the periodic steady state, in kelvin over the ambient: `on_w` for `on_s` of every period, `idle_w` for the rest.

    Each stage obeys tau dT/dt = R P - T; in the steady state its peak is at the end of a call, and those of all stages coincide:
    T = R (P0 + (P1 - P0) (1 - e^(-on/tau)) / (1 - e^(-period/tau))).
    """
    total = 0.0
    for stage in stages:
        share = (1 - exp(-on_s / stage.tau_s)) / (1 - exp(-period_s / stage.tau_s))
        total += stage.k_per_w * (idle_w + (on_w - idle_w) * share)
    return total


def choices(view: RunView, thermal: Thermal) -> tuple[Choice, ...]:
    """Every (problem, contract, pool, repetition) with a kernel whose energy was measured, in the plan's order."""
    if view.registration is None:
        return ()
    found = []
    for group in groups(view.registration):
        states = [cell_state(view, cell) for cell in view.registration.plan if group_of(cell) == group]
        kernels = _standings(_measured(states), thermal)
        if kernels:
            found.append(Choice(group=group, kernels=kernels, best=_best(kernels)))
    return tuple(found)


def _measured(states: Iterable[CellState]) -> dict[str, dict[str, float]]:
    """Signals by source of what passed its gate and has an energy; of several cells the one in which it was fastest."""
    found: dict[str, dict[str, float]] = {}
    for state in states:
        for source, signals in state.signals.items():
            complete = {"time_us", "millijoules", "power_w"} <= signals.keys() and signals["power_w"] > 0
            if complete and state.gates.get(source) == "passed":
                known = found.get(source)
                if known is None or signals["time_us"] < known["time_us"]:
                    found[source] = signals
    return found


def _standings(measured: Mapping[str, Mapping[str, float]], thermal: Thermal) -> tuple[Standing, ...]:
    if not measured:
        return ()
    order = sorted(measured, key=lambda source: (measured[source]["time_us"], source))
    fastest = measured[order[0]]
    period_s = _call_s(fastest) / thermal.load if thermal.calls_per_s is None else 1 / thermal.calls_per_s
    return tuple(
        Standing(
            source=source,
            time_us=seen["time_us"],
            millijoules=seen["millijoules"],
            power_w=seen["power_w"],
            rise_k=_rise(seen, thermal, period_s, thermal.bound * fastest["time_us"]),
        )
        for source in order
        for seen in (measured[source],)
    )


def _rise(seen: Mapping[str, float], thermal: Thermal, period_s: float, slowest_us: float) -> float | None:
    call_s = _call_s(seen)
    if call_s > period_s or seen["time_us"] > slowest_us:
        return None
    return rise(thermal.stages, thermal.idle_w, seen["power_w"], call_s, period_s)


def _call_s(seen: Mapping[str, float]) -> float:
    """Seconds of a warm call: its energy over the power while such calls ran back to back."""
    return seen["millijoules"] / 1000 / seen["power_w"]


def _best(kernels: tuple[Standing, ...]) -> dict[Objective, str]:
    """Equals go to the faster kernel, then to the smaller digest: the order that they stand in."""
    by: dict[Objective, Callable[[Standing], float | None]] = {
        "latency": lambda kernel: kernel.time_us,
        "energy": lambda kernel: kernel.millijoules,
        "thermal": lambda kernel: kernel.rise_k,
    }
    found: dict[Objective, str] = {}
    for objective, of in by.items():
        known = [(value, index) for index, kernel in enumerate(kernels) if (value := of(kernel)) is not None]
        if known:
            found[objective] = kernels[min(known)[1]].source
    return found
