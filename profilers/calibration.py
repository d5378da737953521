"""The measured ceiling of a device from its calibration artifact. Never falls back on the data sheet."""

from __future__ import annotations

from .artifacts import Calibration
from .intervals import lower_median


def copy_gbps(calibration: Calibration) -> float:
    """Copy bandwidth in GB/s (= bytes per ns): bytes read plus written over the lower median of the copy times."""
    return calibration.copy.bytes / lower_median(calibration.copy.ns)
