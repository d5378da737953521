"""The second set's signals of a timeline, warm samples, energy windows and disassembled code (FORMAT.md 6.3). Never judges them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .extras import Compiled, Energy, Extras, Timeline
from .partial import Number, div
from .statistic import lower_median

HOLD_NS = 2000
SOFTMAX, PRODUCTS = "aten::_softmax", ("aten::bmm", "aten::baddbmm")
ATTENTION = {SOFTMAX, *PRODUCTS, "aten::masked_fill"}
TENSOR = {"HMMA", "IMMA", "DMMA", "BMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA"}
LOCAL, ASYNC, GLOBAL = {"LDL", "STL"}, {"LDGSTS", "UTMALDG", "UBLKCP"}, {"LDG", "STG"}
Call = Sequence[tuple[int, int, str]]


def beside(extras: Extras, t: int | None) -> dict[str, Number]:
    """Every signal of what was measured beside the samples; `t`: the lower median of B in ns."""
    found: dict[str, Number] = {}
    if extras.timeline is not None:
        found |= _spans(extras.timeline, t) | _operators(extras.timeline)
    if extras.warm is not None and extras.warm.blocks:
        found["warm_ratio"] = div(t, lower_median(extras.warm.right()))
    if extras.energy is not None and extras.energy.windows:
        found |= _energy(extras.energy)
    if extras.compiled is not None:
        found |= _mix(extras.compiled)
    return found


def _spans(timeline: Timeline, t: int | None) -> dict[str, Number]:
    calls = timeline.calls
    spans = [_span(call) for call in calls]
    gaps = [(span - _union(call)) / span for span, call in zip(spans, calls, strict=True)]
    span = lower_median(spans)
    by_name: Counter[str] = Counter()
    for call in calls:
        for start, end, name in call:
            by_name[name] += end - start
    apart = None if t is None or timeline.collector != "torch_profiler" else (abs(t - span) - HOLD_NS) / span
    return {
        "span_us": span / 1000,
        "timeline_kernels": lower_median([len(call) for call in calls]),
        "gap_frac": sorted(gaps)[(len(gaps) - 1) // 2],
        "hot_share": max(by_name.values()) / by_name.total(),
        "clock_gap": apart,
    }


def _span(call: Call) -> int:
    return max(end for _, end, _ in call) - min(start for start, _, _ in call)


def _union(call: Call) -> int:
    """Length of the union of the intervals, which come in order of start."""
    covered = reached = 0
    for start, end, _ in call:
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def _operators(timeline: Timeline) -> dict[str, Number]:
    if not timeline.operators:
        return {}
    spent = dict(timeline.operators)
    total = sum(spent.values())
    attends = SOFTMAX in spent and any(name in spent for name in PRODUCTS)
    attention = sum(ns for name, ns in spent.items() if name in ATTENTION) if attends else 0
    return {"hot_operator_share": max(spent.values()) / total, "attention_share": attention / total}


def _energy(energy: Energy) -> dict[str, Number]:
    windows = energy.windows
    middle = (len(windows) - 1) // 2
    return {
        "millijoules": sorted(w.millijoules / w.calls for w in windows)[middle],
        "power_w": sorted(w.millijoules / w.milliseconds for w in windows)[middle],
        "temperature_c": max(w.temperature_c for w in windows),
    }


def _mix(compiled: Compiled) -> dict[str, Number]:
    counts = [(opcode.split("."), n) for kernel in compiled.kernels for opcode, n in kernel.mix.items()]
    moved = [(words, n) for words, n in counts if words[0] in GLOBAL]
    wide = sum(n for words, n in moved if "128" in words[1:])
    return {
        "sass_tensor": sum(n for words, n in counts if words[0] in TENSOR),
        "sass_local": sum(n for words, n in counts if words[0] in LOCAL),
        "sass_async": sum(n for words, n in counts if words[0] in ASYNC),
        "sass_wide_frac": div(wide, sum(n for _, n in moved)),
    }
