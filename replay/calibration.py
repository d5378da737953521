"""The shape of a calibration (FORMAT.md section 5): measured ceilings, and the limits that bring the second set of signals. Never measures."""

from __future__ import annotations

from typing import Annotated

import msgspec

from .artifacts import Nanoseconds, Positive, Timed


class Copy(msgspec.Struct, frozen=True):
    """Device copy: bytes read plus bytes written per copy, and the times in ns."""

    bytes: Positive
    ns: tuple[Nanoseconds, ...]


class Traffic(msgspec.Struct, frozen=True):
    """Bytes moved per pass over a buffer that stays in the L2, and the times in ns."""

    bytes: Positive
    ns: Timed


class Product(msgspec.Struct, frozen=True):
    """FLOP per matrix product, and the times in ns."""

    flop: Positive
    ns: Timed


class DeviceLimits(msgspec.Struct, frozen=True):
    """What one SM holds, how many there are, and their top clock."""

    sms: Positive
    warps_per_sm: Positive
    blocks_per_sm: Positive
    registers_per_sm: Positive
    shared_per_sm: Positive
    shared_reserved: Annotated[int, msgspec.Meta(ge=0)]
    sm_clock_mhz: Positive


class Calibration(msgspec.Struct, frozen=True):
    """The device's measured ceilings, and (not in older ledgers) its limits."""

    copy: Copy
    l2: Traffic | None = None
    gemm_fp32: Product | None = None
    gemm_tf32: Product | None = None
    gemm_bf16: Product | None = None
    limits: DeviceLimits | None = None

    def product(self, path: str) -> Product | None:
        """The products timed on a path."""
        return {"fp32": self.gemm_fp32, "tf32": self.gemm_tf32, "bf16": self.gemm_bf16}.get(path)
