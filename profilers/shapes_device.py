"""The shape of a device's calibration: its measured ceilings and its limits. Never holds a data sheet's number."""

from __future__ import annotations

from .shapes import Artifact, Count, Positive, Times


class Copy(Artifact, frozen=True):
    """A device copy: bytes read plus bytes written per copy, and its times in ns."""

    bytes: Positive
    ns: Times


class Product(Artifact, frozen=True):
    """A library matrix product: FLOP each, and its times in ns."""

    flop: Positive
    ns: Times


class DeviceLimits(Artifact, frozen=True):
    """What one streaming multiprocessor holds, and how many there are; shared memory in bytes, clock in MHz."""

    sms: Positive
    warps_per_sm: Positive
    blocks_per_sm: Positive
    registers_per_sm: Positive
    shared_per_sm: Positive
    shared_reserved: Count
    sm_clock_mhz: Positive


class Calibration(Artifact, frozen=True):
    """The measured ceilings of a device and its limits. `l2` is a copy that stays in the L2."""

    copy: Copy
    l2: Copy | None = None
    gemm_fp32: Product | None = None
    gemm_tf32: Product | None = None
    gemm_bf16: Product | None = None
    limits: DeviceLimits | None = None
