"""What a timeline, warm samples, energy windows and a disassembly say: gaps, shares, second clock. Reads decoded artifacts, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .artifacts import Compiled, Energy, Samples, Timeline
from .intervals import b_times, lower_median

Number = int | float | None
Call = tuple[tuple[int, int, str], ...]
PRODUCTS = ("aten::bmm", "aten::baddbmm")
ATTENTION = (*PRODUCTS, "aten::_softmax", "aten::masked_fill")
TENSOR = {"HMMA", "IMMA", "DMMA", "BMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA"}
LOCAL, ASYNC, GLOBAL = {"LDL", "STL"}, {"LDGSTS", "UTMALDG", "UBLKCP"}, {"LDG", "STG"}


def timeline_signals(timeline: Timeline, time_ns: int) -> dict[str, Number]:
    """Span, kernels, idle gaps, hot kernel and operator of a call, and how far the two clocks are apart."""
    calls = timeline.calls
    spans = [span(call) for call in calls]
    middle = lower_median(spans)
    spent: Counter[str] = Counter()
    for call in calls:
        for start, end, name in call:
            spent[name] += end - start
    return {
        "span_us": middle / 1000,
        "timeline_kernels": lower_median([len(call) for call in calls]),
        "gap_frac": _lower_median([(whole - busy(call)) / whole for whole, call in zip(spans, calls, strict=True)]),
        "hot_share": max(spent.values()) / spent.total(),
        "clock_gap": (abs(time_ns - middle) - 2000) / middle if timeline.collector == "torch_profiler" else None,
        **_operators(timeline.operators),
    }


def span(call: Call) -> int:
    """From the first start to the last end, in ns."""
    return max(end for _, end, _ in call) - min(start for start, _, _ in call)


def busy(call: Call) -> int:
    """Length in ns of the union of the kernels' intervals: time in which at least one runs."""
    total, reached = 0, min(start for start, _, _ in call)
    for start, end, _ in sorted(call):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _operators(found: tuple[tuple[str, int], ...] | None) -> dict[str, Number]:
    total = sum(ns for _, ns in found or ())
    if not found or total <= 0:
        return {}
    names = {name for name, _ in found}
    attends = "aten::_softmax" in names and bool(names & set(PRODUCTS))
    inside = sum(ns for name, ns in found if name in ATTENTION)
    return {
        "hot_operator_share": max(ns for _, ns in found) / total,
        "attention_share": inside / total if attends else 0.0,
    }


def warm_signals(warm: Samples, time_ns: int) -> dict[str, Number]:
    """How much faster the same call is with its inputs left in the L2."""
    return {"warm_ratio": time_ns / lower_median(b_times(warm))}


def energy_signals(energy: Energy) -> dict[str, Number]:
    """Energy per call in mJ, power in W (mJ/ms), hottest end of a window in C; nothing without a window."""
    if not energy.windows:
        return {}
    return {
        "millijoules": _lower_median([window.millijoules / window.calls for window in energy.windows]),
        "power_w": _lower_median([window.millijoules / window.milliseconds for window in energy.windows]),
        "temperature_c": max(window.temperature_c for window in energy.windows),
    }


def compiled_signals(compiled: Compiled) -> dict[str, Number]:
    """Static counts over all kernels, by what an opcode's first word says."""
    mix: Counter[str] = Counter()
    for kernel in compiled.kernels:
        mix.update(kernel.mix)
    wide = [(("128" in words), count) for opcode, count in mix.items() if (words := opcode.split("."))[0] in GLOBAL]
    total = sum(count for _, count in wide)
    return {
        "sass_tensor": _count(mix, TENSOR),
        "sass_local": _count(mix, LOCAL),
        "sass_async": _count(mix, ASYNC),
        "sass_wide_frac": sum(count for is_wide, count in wide if is_wide) / total if total else None,
    }


def _count(mix: Counter[str], words: set[str]) -> int:
    return sum(count for opcode, count in mix.items() if opcode.split(".")[0] in words)


def _lower_median(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
