"""Limits of a draw whose signs are mixed, where plain draws hide what a lower precision does. Runs the user's code, times nothing.

Between terms of one sign rounding cancels: a long sum of positive products is nearer in bf16 than operands that a TF32 unit cuts, and
nearly the product of two means. With mixed signs it is neither. Not every computation bears that, nor every input of one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..events.errors import BadInput
from ..events.model import Limits
from .limits import Seen, limits

Tensors = tuple[torch.Tensor, ...]
Look = Callable[[Tensors, Tensors], Seen | None]
"""What is seen on changed inputs, drawn beside these plain ones; None where eager fp32 does not bear them."""

_MOST_ALONE = 4
_STEADY = 3.0


def needed(plain: Seen, stated: dict[str, Limits]) -> bool:
    """Whether the limits of plain draws let a lower precision through: bf16 where TF32 is allowed, or TF32 where it is not."""
    return not _tell_apart([plain], stated)


def mixed(drawn: tuple[Tensors, ...], look: Look) -> tuple[dict[str, Limits], tuple[int, ...]]:
    """The limits, and which inputs have their signs mixed: all, or else the first that alone will do. Empty where none will."""
    floating = tuple(place for place, value in enumerate(drawn[0]) if value.is_floating_point())
    for places in (floating, *((place,) for place in floating[:_MOST_ALONE] if len(floating) > 1)):
        if found := _on(places, drawn, look):
            return found, places
    return {}, ()


def tossed(values: Tensors, places: tuple[int, ...], coins: torch.Generator) -> Tensors:
    """The inputs, each sign of those at `places` by a coin of its own."""
    return tuple(_tossed(value, coins) if place in places else value for place, value in enumerate(values))


def _tossed(value: torch.Tensor, coins: torch.Generator) -> torch.Tensor:
    return torch.where(torch.rand(value.shape, generator=coins, device=value.device) < 0.5, -value, value)


def _on(places: tuple[int, ...], drawn: tuple[Tensors, ...], look: Look) -> dict[str, Limits]:
    """Limits that hold for every draw alike and tell the precisions apart in each; empty where there are none."""
    every: list[Seen] = []
    found: dict[str, Limits] = {}
    for number, values in enumerate(drawn):
        coins = torch.Generator(device=values[0].device).manual_seed(8 + number)
        seen = look(values, tossed(values, places, coins))
        if seen is None or not (found := _shared([*every, seen])):
            return {}
        every.append(seen)
    return found


def _shared(every: list[Seen]) -> dict[str, Limits]:
    """Limits of all these draws; empty where they are no limits."""
    try:
        found = limits(worst(every))
    except BadInput:
        return {}  # fp32 itself cannot compute that
    return found if _steady(every) and _tell_apart(every, found) else {}


def _steady(every: list[Seen]) -> bool:
    """Whether one draw tells of the next: a quotient whose divisor comes near 0 is off by as much as chance will have it."""
    sizes = [seen.tf32[0] for seen in every]
    return max(sizes) <= _STEADY * min(sizes)


def _tell_apart(every: list[Seen], stated: dict[str, Limits]) -> bool:
    strict, tf32 = stated["fp32-strict"].rel_l2, stated["tf32-allowed"].rel_l2
    return all(strict < seen.tf32[0] and tf32 < seen.bf16[0] for seen in every)


def worst(every: list[Seen]) -> Seen:
    """The largest errors of any draw, but for the smallest that TF32 shows, which `fp32-strict` has to refuse."""
    return Seen(
        fp32=max(seen.fp32 for seen in every),
        tf32=min(seen.tf32 for seen in every),
        bf16=min(seen.bf16 for seen in every),
        tf32_worst=max(seen.tf32_worst for seen in every),
        bf16_worst=max(seen.bf16_worst for seen in every),
        tf32_shown=max(seen.tf32_shown for seen in every),
        peak=max(seen.peak for seen in every),
        whole=every[0].whole,
    )
