"""The counters of a whole call from those of its kernels. Never adds what does not add and never fills a gap with 0."""

from __future__ import annotations

from collections.abc import Sequence

from .ncu_csv import Kernel
from .signals import GLOBAL_LOADS, LOAD_EFFICIENCY

DURATION = "gpu__time_duration.sum"
LOAD_BYTES = "smsp__sass_data_bytes_mem_global_op_ld.sum"
LOAD_SECTORS = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum"
AUXILIARY = (DURATION, LOAD_BYTES, LOAD_SECTORS)
"""To be collected beside what is asked for: the weights, and the parts of the load efficiency."""

_SECTOR_BYTES = 32
_ADDITIVE = (".sum", ".avg")
_EXTREME = (".max", ".min")


def aggregate(kernels: Sequence[Kernel], metrics: Sequence[str]) -> dict[str, float | None]:
    """The metrics over all kernels: counts added, percentages and ratios weighted by duration, load efficiency rebuilt.

    One unknown part makes the whole unknown. A maximum or minimum over units is known for a single kernel only.
    """
    return {name: _over_kernels(kernels, name) for name in metrics}


def _over_kernels(kernels: Sequence[Kernel], name: str) -> float | None:
    if name == LOAD_EFFICIENCY:
        return _load_efficiency(kernels)
    if len(kernels) == 1:
        return kernels[0].metrics.get(name)
    if name.endswith(_ADDITIVE):
        return _total(kernels, name)
    return None if name.endswith(_EXTREME) else _weighted(kernels, name)


def _total(kernels: Sequence[Kernel], name: str) -> float | None:
    values = [kernel.metrics.get(name) for kernel in kernels]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _weighted(kernels: Sequence[Kernel], name: str) -> float | None:
    total, parts = 0.0, 0.0
    for kernel in kernels:
        weight, value = kernel.metrics.get(DURATION), kernel.metrics.get(name)
        if weight is None or value is None:
            return None
        total, parts = total + weight, parts + weight * value
    return parts / total if total else None


def _load_efficiency(kernels: Sequence[Kernel]) -> float | None:
    """Percent of the bytes in loaded sectors that were asked for; kernels without such loads have no say."""
    loading = [kernel for kernel in kernels if kernel.metrics.get(GLOBAL_LOADS) != 0]
    wanted, sectors = _total(loading, LOAD_BYTES), _total(loading, LOAD_SECTORS)
    if wanted is not None and sectors:
        return 100 * wanted / (_SECTOR_BYTES * sectors)
    return _weighted(loading, LOAD_EFFICIENCY)
