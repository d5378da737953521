"""Draws a subject's inputs from its seed: the problem's own values, and the same changed in ways that a kernel must bear. Keeps nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch

from . import switches
from .device import AnyDevice
from .loading import load_reference
from .protocol import Subject

Inputs = tuple[torch.Tensor, ...]

_LARGE, _SMALL, _DENORMAL = 64.0, 2.0**-12, 1e-40


def _every_third_denormal(value: torch.Tensor) -> torch.Tensor:
    changed = value.clone()
    # A copy is dense whatever the strides: in memory's order, for a transposed tensor has no flat view.
    changed.as_strided((changed.numel(),), (1,))[::3] *= _DENORMAL
    return changed


KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda value: value,
    "large": lambda value: value * _LARGE,
    "small": lambda value: value * _SMALL,
    "one_sign": torch.abs,
    "denormal": _every_third_denormal,
}
"""What is done to each floating-point input of a draw."""


def draw(device: AnyDevice, subject: Subject, index: int, kind: str = "plain") -> Inputs:
    """Fresh inputs number `index` of a subject: the problem's own sizes and strides, values changed as `kind` says."""
    generator = torch.Generator(device=device.torch_device).manual_seed((subject.seed + index) % (1 << 63))
    with switches.strict():
        drawn: Inputs = load_reference(subject.reference).inputs(subject.shape, generator, device.torch_device)
        change = KINDS[kind]
        return tuple(change(value) if value.is_floating_point() else value for value in drawn)


def copies(views: Inputs) -> Inputs:
    """Private copies in new memory, strides kept."""
    fresh = tuple(torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in views)
    for new, view in zip(fresh, views, strict=True):
        new.copy_(view)
    return fresh
