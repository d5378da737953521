"""Puts samples together that were taken in parts. Works on artifacts as JSON objects and judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Samples = dict[str, Any]


def joined(first: Samples, more: Samples) -> Samples:
    """Both parts as one samples artifact: blocks in order, the state before the first and after the last, times summed."""
    whole = {**first, **more, "blocks": first["blocks"] + more["blocks"]}
    whole.update((key, first[key]) for key in ("before", "first") if key in first)
    if "switches" in first and "switches" in more:
        # What an arm left behind in any part; the state before all of them.
        whole["switches"] = {key: {**more["switches"].get(key, {}), **left} for key, left in first["switches"].items()}
    for key in ("wall_s", "throttled_ns"):
        if key in first and key in more:
            whole[key] = first[key] + more[key]
    if "outputs" in first and "outputs" in more:
        whole["outputs"] = {key: first["outputs"][key] + more["outputs"][key] for key in first["outputs"]}
    if first.get("energy") and more.get("energy"):
        whole["energy"] = first["energy"] + more["energy"]
    else:
        whole.pop("energy", None)  # energies of some blocks alone are none
    return whole


def together(parts: Sequence[Samples]) -> Samples:
    """One measurement from its parts, of which the first has the state before and the last the state after."""
    whole = parts[0]
    for part in parts[1:]:
        whole = joined(whole, part)
    held = _throttled_ns(whole.get("before") or {}, whole.get("after") or {})
    return whole if held is None else {**whole, "throttled_ns": held}


def _throttled_ns(before: dict[str, float | None], after: dict[str, float | None]) -> float | None:
    """Nanoseconds between two readings in which power or heat held the clocks down; None where they were not read."""
    pairs = [(value, after.get(name)) for name, value in before.items() if name.endswith("_throttled_ns")]
    return max((end - start for start, end in pairs if start is not None and end is not None), default=None)
