"""How a run will decide, fixed beforehand: evolution, statistics, objective and bounds. Never decides."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from .base import Value


class Policy(Value, frozen=True):
    """Evolution policy: retire (promote) when the one-sided credible bound at credible_num/credible_den passes 1/2.

    `patience`: after so many rounds on one incumbent without a FASTER a rule is passed over there (UNSET: never). `order` "value":
    within a tier by expected log-gain per GPU second, so that neither a position in a file nor a promotion decides (UNSET: they do).
    `offers` "once": no generator but the catalogue offers again what was tried on the incumbent (UNSET: but for what a gate refused).
    """

    credible_num: int
    credible_den: int
    patience: int | UnsetType = UNSET
    order: Literal["value"] | UnsetType = UNSET
    offers: Literal["once"] | UnsetType = UNSET


class Bounds(Value, frozen=True):
    """What must bear out a FASTER: how much slower than alone an incumbent may be beside its candidate (fraction); how many ns a call
    the candidate's wall clock may show beyond its GPU time and the incumbent's own excess; the least share of the SMs' active time
    that its GPU time must cover.
    """

    alone: float
    wall_slack_ns: int
    busy: float


class Stage(Value, frozen=True):
    """One stage of a Foster network: a resistance (kelvin per watt) beside a capacity, which together have a time constant."""

    k_per_w: float
    tau_s: float


class Heat(Value, frozen=True):
    """How a kernel heats a device: called `calls_per_s` times a second, which draws `idle_w` between calls, through `stages` in series."""

    calls_per_s: float
    idle_w: float
    stages: tuple[Stage, ...]


class Objective(Value, frozen=True):
    """What verdicts are by where it is not time: energy a call, or the peak rise of `heat` (thermal, and only there), both of warm calls.

    A candidate may take at most `bound` times as long as the fastest incumbent of its cell.
    """

    by: Literal["energy", "thermal"]
    bound: float
    heat: Heat | UnsetType = UNSET


class Statistics(Value, frozen=True):
    """Verdict parameters, fixed beforehand: ABBA blocks, two-sided tail of the interval, margin, multiple of the floor.

    `looks` are the numbers of blocks, ascending and ending with `blocks`, after which a round's verdict is asked for, each at its
    share of the tail; a round ends at the first look that is not ambiguous. UNSET: one look, after `blocks`. `bounds` UNSET: a
    FASTER stands by its interval alone. `objective` UNSET: verdicts are by latency.
    """

    blocks: int
    tail_num: int
    tail_den: int
    margin: float
    floor_multiple: float
    looks: tuple[int, ...] | UnsetType = UNSET
    bounds: Bounds | UnsetType = UNSET
    objective: Objective | UnsetType = UNSET


class Proposing(Value, frozen=True):
    """Bounds of a proposed rule, fixed beforehand: problems that must speak for its clause, and the least share of successes it keeps."""

    support: int
    purity_num: int
    purity_den: int
