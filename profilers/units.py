"""Numbers and units as Nsight Compute prints them. Never guesses a locale and never passes an unknown unit on."""

from __future__ import annotations

import math
import re

from ..events.errors import ToolFailed

_MISSING = {"", "n/a", "nan", "-nan", "inf", "-inf"}
_NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][+-]?\d+)?")

_TIME_NS = {
    **dict.fromkeys(("ns", "nsecond"), 1.0),
    **dict.fromkeys(("us", "usecond"), 1e3),
    **dict.fromkeys(("ms", "msecond"), 1e6),
    **dict.fromkeys(("s", "second"), 1e9),
}
_SCALED = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}
_RATES = {"hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9}
_COUNTED = ("", "%", "inst", "cycle", "warp", "thread", "block", "sector", "request", "register", "wavefront")
_FACTORS = _SCALED | _RATES | dict.fromkeys(_COUNTED, 1.0)


def number(text: str, name: str) -> float | None:
    """The value of a cell printed under LC_ALL=C; None for n/a, nan, inf and nothing. ToolFailed for anything else."""
    plain = text.removeprefix("(!)").strip()
    if plain.lower() in _MISSING:
        return None
    if not _NUMBER.fullmatch(plain):
        raise ToolFailed(f"ncu CSV: {name} expected a number such as 12,345.67, found {text!r}: run ncu under LC_ALL=C")
    value = float(plain.replace(",", ""))
    return value if math.isfinite(value) else None


def unit_factor(unit: str, name: str) -> float:
    """Multiply a value in `unit` by this for ns, bytes or plain counts; a rate over time becomes one per second."""
    top, slash, bottom = unit.partition("/")
    if bottom in _TIME_NS and slash:
        return _factor(top, unit, name) * 1e9 / _TIME_NS[bottom]
    if top in _TIME_NS and not slash:
        return _TIME_NS[top]
    return _factor(top, unit, name) / (_factor(bottom, unit, name) if slash else 1.0)


def _factor(part: str, unit: str, name: str) -> float:
    if part not in _FACTORS:
        raise ToolFailed(
            f"ncu CSV: {name} is in the unknown unit {unit!r}: run ncu with --print-units base, or name the unit here"
        )
    return _FACTORS[part]
