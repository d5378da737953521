"""The shapes of timed calls: interleaved samples with what was seen beside them, and sweeps. Never holds a statistic of them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .shapes import Artifact, AtLeastOne, FromZero, Nanoseconds, Times
from .shapes_gate import OutputErrors

# More is no reading, and so small a part of a call that no digits are left of its heat.
Metered = Annotated[int, msgspec.Meta(gt=0, le=10**12)]


class DeviceState(Artifact, frozen=True):
    """The device beside a measurement: SM clock in MHz, NVML's bits of why clocks are held down; None = not read."""

    sm_clock_mhz: FromZero | None = None
    throttle_bits: FromZero | None = None

    def __post_init__(self) -> None:
        if self.throttle_bits is not None and not float(self.throttle_bits).is_integer():
            raise ValueError(f"expected throttle_bits as a whole number, found {self.throttle_bits}")


class TimedOutputs(Artifact, frozen=True):
    """Outputs of timed calls: B's against A's per draw, two a block; at the ends of each part, A's and B's against the reference."""

    pairs: Annotated[tuple[OutputErrors, ...], AtLeastOne]
    ends: Annotated[tuple[tuple[OutputErrors, OutputErrors], ...], AtLeastOne]


class Batch(Artifact, frozen=True):
    """Warm calls back to back between two moves of an energy counter: how many, and what they took."""

    millijoules: Metered
    calls: Metered
    milliseconds: Metered


EnergyBlock = tuple[Batch, Batch, Batch, Batch]


class Samples(Artifact, frozen=True):
    """Interleaved timings in ns: blocks of (a, b, b, a), A = against or left, B = source or right.

    `throttled_ns` of the `wall_s` seconds that they took, the device held its clocks down for power or heat. `energy`: as many
    blocks of batches, where they were asked for.
    """

    clock: str
    cache: str
    blocks: Annotated[tuple[tuple[Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds], ...], msgspec.Meta(min_length=1)]
    unit: Literal["ns"] = "ns"
    before: DeviceState | None = None
    after: DeviceState | None = None
    throttled_ns: FromZero | None = None
    wall_s: FromZero | None = None
    outputs: TimedOutputs | None = None
    energy: tuple[EnergyBlock, ...] | None = None

    def __post_init__(self) -> None:
        if self.energy is not None and len(self.energy) != len(self.blocks):
            raise ValueError(f"expected energies of {len(self.blocks)} blocks, found {len(self.energy)}")

    def until(self, blocks: int) -> Samples:
        """The samples as they were after so many blocks."""
        energy = None if self.energy is None else self.energy[:blocks]
        return msgspec.structs.replace(self, blocks=self.blocks[:blocks], energy=energy)


class Sweep(Artifact, frozen=True):
    """Times in ns per configuration, in the order of the configurations; None where one did not compile or run."""

    samples: tuple[Times | None, ...]
    unit: Literal["ns"] = "ns"
