"""Which hardware metrics a set of rules needs, and which of them a chip has. Never collects one and asks no device.

Names and chips: CUPTI 13.0's host library, which `tests/worker/test_cupti_host.py` asks again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events.model import Rule
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

_TRAFFIC = (DRAM_READ, DRAM_WRITE)
_INSTRUCTIONS = (HMMA, HFMA2, TENSOR_ANY)

BY_SIGNAL = {
    "dram_bytes": _TRAFFIC,
    "bw_frac": _TRAFFIC,
    "traffic_excess": _TRAFFIC,
    "load_eff": (LOAD_EFFICIENCY, GLOBAL_LOADS),
    "occupancy": (OCCUPANCY,),
    "tensor_frac": TENSOR_METRICS,
    "tensor_inst": _INSTRUCTIONS,
    "tensor_active": (*TENSOR_METRICS, *_INSTRUCTIONS),
}
"""Signal to metrics, over all chips; signals that are not here need no counter."""

BASE = (*_TRAFFIC, CYCLES_ACTIVE, OCCUPANCY, LOAD_EFFICIENCY, GLOBAL_LOADS, *TENSOR_METRICS, *_INSTRUCTIONS)
"""Collected whatever the rules: two passes on every chip above, one of them for all `sass` metrics together."""

# Alone on its chip each of these leaves out what the plain pipe metric takes in, or replaces a name deprecated there.
_TENSOR_PIPE = {
    "GH100": TENSOR_METRICS[0],
    "AD102": TENSOR_METRICS[1],
    "AD104": TENSOR_METRICS[1],
    "GB100": TENSOR_METRICS[2],
}
_SPLIT = ("GA100", "GH100")


def needed(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Sorted union of the base set, what the rules' signals need and what the rules name themselves, over all chips."""
    wanted = set(BASE)
    for rule in rules:
        asked = [clause.signal for clause in rule.clauses]
        asked += [rule.gain.signal] if rule.gain.signal is not None else []
        wanted.update(rule.metrics, *(BY_SIGNAL.get(signal, ()) for signal in asked))
    return tuple(sorted(wanted))


def for_chip(chip: str, metrics: Iterable[str]) -> tuple[str, ...]:
    """The metrics without the tensor names that are of no use on the chip, in their order.

    A chip keeps the most exact pipe metric it has (the plain one if it is not known here). Where instructions are not
    split by HFMA2 the name of that count stays in: collected as null, it is the record's proof that there is no split.
    """
    pipe = _TENSOR_PIPE.get(chip, TENSOR_METRICS[-1])
    counts = (HMMA, HFMA2) if chip in _SPLIT else (TENSOR_ANY, HFMA2)
    dropped = {*TENSOR_METRICS, *_INSTRUCTIONS} - {pipe, *counts}
    return tuple(name for name in metrics if name not in dropped)
