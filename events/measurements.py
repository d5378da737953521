"""What is measured of a device and of a kernel, and the interval that comes of samples. Never derives one."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from .base import Event, Tier, Value
from .registration import Cell


class Chip(Value, frozen=True):
    """A chip: data-sheet dense peaks in TFLOP/s by path (absent path = the chip has none) and DRAM peak in GB/s."""

    name: str
    compute_capability: str
    peaks_tflops: dict[str, float]
    dram_gbps: float


class Interval(Value, frozen=True):
    """Order-statistic interval of the median of the paired ratios left/right; ratios above 1 say that right is faster (or, with an
    objective, that it draws or heats less).
    """

    lower: float
    median: float
    upper: float
    blocks: int
    rank: int


class DeviceCalibrated(Event, frozen=True, tag=True):
    """The device's measured ceilings, from the artifact `calibration`; `chip` holds the data-sheet peaks beside them."""

    run: str
    device: str
    chip: Chip
    copy_gbps: float
    calibration: str
    origin_seq: int | None = None


class Profiled(Event, frozen=True, tag=True):
    """Samples of `source` interleaved with `against` (A = against, B = source), counters, and the signals they give.

    `extras` are artifacts by role (timeline, warm, compiled, energy) that live rules asked for.
    """

    cell: Cell
    round: int
    source: str
    against: str
    tier: Tier
    samples: str
    counters: str | None
    launches: str
    signals: dict[str, float]
    cache: str
    origin_seq: int | None = None
    extras: dict[str, str] | UnsetType = UNSET


class NoiseFloorMeasured(Event, frozen=True, tag=True):
    """A/A interval of one kernel against itself; `floor` = max(upper - 1, 1 / lower - 1)."""

    cell: Cell
    round: int
    source: str
    samples: str
    interval: Interval
    floor: float
    origin_seq: int | None = None
