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
_COINS = 0x5DEECE66D
MIXED = "mixed_signs"


def _every_third_denormal(value: torch.Tensor) -> torch.Tensor:
    changed = value.clone()
    # A copy is dense whatever the strides: in memory's order, for a transposed tensor has no flat view.
    changed.as_strided((changed.numel(),), (1,))[::3] *= _DENORMAL
    return changed


def mixed_signs(value: torch.Tensor, coins: torch.Generator) -> torch.Tensor:
    """Each element's sign by a coin of its own: a pattern in memory's order could cancel between the factors of a product."""
    tossed = torch.rand(value.shape, generator=coins, device=value.device)
    return torch.where(tossed < 0.5, -value, value)


KINDS: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "plain": lambda value, _: value,
    "large": lambda value, _: value * _LARGE,
    "small": lambda value, _: value * _SMALL,
    "one_sign": lambda value, _: torch.abs(value),
    "denormal": lambda value, _: _every_third_denormal(value),
    MIXED: mixed_signs,
}
"""What is done to each floating-point input of a draw, with coins to toss."""


def draw(device: AnyDevice, subject: Subject, index: int, kind: str = "plain") -> Inputs:
    """Fresh inputs number `index` of a subject: the problem's own sizes and strides, values changed as `kind` says."""
    seed = (subject.seed + index) % (1 << 63)
    generator = torch.Generator(device=device.torch_device).manual_seed(seed)
    # Of another stream than the values: one that is under a half would else always be negative.
    coins = torch.Generator(device=device.torch_device).manual_seed(seed ^ _COINS)
    with switches.strict():
        drawn: Inputs = load_reference(subject.reference).inputs(subject.shape, generator, device.torch_device)
        change, places = KINDS[kind], subject.tossed if kind == MIXED else ()
        return tuple(
            change(value, coins) if value.is_floating_point() and (not places or place in places) else value
            for place, value in enumerate(drawn)
        )


def copies(views: Inputs) -> Inputs:
    """Private copies in new memory, strides kept."""
    fresh = tuple(torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in views)
    for new, view in zip(fresh, views, strict=True):
        new.copy_(view)
    return fresh
