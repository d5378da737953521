"""The chip table: data-sheet peaks by device name. Never asks a device, and never lends one chip the peaks of another."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from ..events.model import Chip, Value

SPLIT_PRODUCTS = 3
"""TF32 products that a float32 product is split into where it is to be as exact (tf32x3): high times high, and each high times the other's low part."""


class Row(Value, frozen=True):
    """A row of chips.toml: the chip, and the device names (without the maker's prefix) that the driver gives it."""

    name: str
    devices: tuple[str, ...]
    compute_capability: str
    dram_gbps: float
    peaks_tflops: dict[str, float]


@cache
def table() -> tuple[Row, ...]:
    """All rows of chips.toml, in the order of the file."""
    text = files(__name__.rpartition(".")[0]).joinpath("chips.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["chip"], tuple[Row, ...])


def chip_for(name: str, compute_capability: str) -> Chip:
    """The chip of a device name as the driver prints it ("NVIDIA H200") and a compute capability ("9.0").

    Names match whole: a Ti, a laptop part or a MIG slice is another chip. A chip that the table lacks keeps its device name, has no
    peaks and 0.0 GB/s: signals that need a peak are then absent, and no physical floor is checked.
    """
    device = name.removeprefix("NVIDIA ")
    for row in table():
        if device in row.devices and row.compute_capability == compute_capability:
            return Chip(
                name=row.name,
                compute_capability=compute_capability,
                peaks_tflops=row.peaks_tflops | split_peak(row.peaks_tflops),
                dram_gbps=row.dram_gbps,
            )
    return Chip(name=name, compute_capability=compute_capability, peaks_tflops={}, dram_gbps=0.0)


def split_peak(peaks: dict[str, float]) -> dict[str, float]:
    """The path `tf32x3` in TFLOP/s of float32 products, by a third of `tf32`; empty for a chip without TF32."""
    return {"tf32x3": peaks["tf32"] / SPLIT_PRODUCTS} if "tf32" in peaks else {}
