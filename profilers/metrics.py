"""The planner: which hardware metrics and artifacts a set of live rules needs, and which metrics a chip has. Collects nothing, asks no device.

Names and chips: CUPTI 13.0's host library, which `tests/worker/test_cupti_host.py` asks again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..events.model import Rule
from .inputs import ROLES, evidence, is_metric
from .signals import (
    DRAM_READ,
    DRAM_WRITE,
    GLOBAL_LOADS,
    HFMA2,
    HMMA,
    LOAD_EFFICIENCY,
    OCCUPANCY,
    TENSOR_ANY,
    TENSOR_METRICS,
)

CHIPS = {"7.5": "TU104", "8.0": "GA100", "8.6": "GA102", "8.9": "AD102", "9.0": "GH100", "10.0": "GB100"}
"""NVIDIA's chip name by compute capability; chips of one capability know the same metrics (AD104 those of AD102)."""

CYCLES_ACTIVE = "sm__cycles_active.avg"

_INSTRUCTIONS = (HMMA, HFMA2, TENSOR_ANY)

BASE = (DRAM_READ, DRAM_WRITE, CYCLES_ACTIVE, OCCUPANCY, LOAD_EFFICIENCY, GLOBAL_LOADS, *TENSOR_METRICS, *_INSTRUCTIONS)
"""Collected whatever the rules: two passes on every chip above, one of them for all `sass` metrics together."""

# Alone on its chip each of these leaves out what the plain pipe metric takes in, or replaces a name deprecated there.
_TENSOR_PIPE = {
    "GH100": TENSOR_METRICS[0],
    "AD102": TENSOR_METRICS[1],
    "AD104": TENSOR_METRICS[1],
    "GB100": TENSOR_METRICS[2],
}
_SPLIT = ("GA100", "GH100")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to collect for a kernel: hardware metrics over all chips, sorted, and the roles of further artifacts."""

    metrics: tuple[str, ...]
    roles: tuple[str, ...]


def plan(live: Iterable[Rule]) -> Plan:
    """The union of the base set, of what the live rules' signals rest on, and of what the rules name themselves.

    A rule that is no longer live is not planned for: that is how a retirement makes the next profile cheaper.
    """
    metrics, roles = set(BASE), set[str]()
    for rule in live:
        asked = [clause.signal for clause in rule.clauses]
        asked += [rule.gain.signal] if rule.gain.signal is not None else []
        asked += [rule.gain.share] if isinstance(rule.gain.share, str) else []
        inputs = {name for signal in asked for name in evidence(signal)}
        metrics.update(rule.metrics, filter(is_metric, inputs))
        roles.update(inputs & set(ROLES))
    return Plan(metrics=tuple(sorted(metrics)), roles=tuple(role for role in ROLES if role in roles))


def for_chip(chip: str, metrics: Iterable[str]) -> tuple[str, ...]:
    """The metrics without the tensor names that are of no use on the chip, in their order.

    A chip keeps the most exact pipe metric it has (the plain one if it is not known here). Where instructions are not
    split by HFMA2 the name of that count stays in: collected as null, it is the record's proof that there is no split.
    """
    pipe = _TENSOR_PIPE.get(chip, TENSOR_METRICS[-1])
    counts = (HMMA, HFMA2) if chip in _SPLIT else (TENSOR_ANY, HFMA2)
    dropped = {*TENSOR_METRICS, *_INSTRUCTIONS} - {pipe, *counts}
    return tuple(name for name in metrics if name not in dropped)
