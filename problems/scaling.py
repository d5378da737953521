"""Makes a module's sizes fit a budget, by halving the whole numbers of its file. Allocates nothing: sizes are read on torch's meta device."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import msgspec
import torch
from torch.utils.flop_counter import FlopCounterMode

from ..events.errors import BadInput
from .knobs import Knob, knobs, with_values
from .probing import Budget
from .rounding import Traffic

_BATCH = re.compile(r"batch", re.IGNORECASE)
# Numbers that say what a module does, not how much of it.
_KEPT = re.compile(
    r"kernel|stride|pad|dilat|group|n(?:um)?_layer|n(?:um)?_head|heads|classes|axis|ratio|factor|scale", re.IGNORECASE
)
_LEAST_BATCH, _LEAST = 2, 16
# So many times over the budget is slow, and no reason to refuse.
_BEARABLE = 64.0


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one call takes, as in Budget."""

    held: int
    moved: int
    flops: int

    def excess(self, budget: Budget) -> float:
        """How many times over the budget, by the worst of the three."""
        return max(self.held / budget.held, self.moved / budget.moved, self.flops / budget.flops)


def cost(module: ModuleType) -> Cost:
    """Of one call on the meta device. Raises whatever the module does."""
    counter, traffic = FlopCounterMode(display=False), Traffic()
    with torch.device("meta"), torch.no_grad():
        given = module.get_inputs()
        model = module.Model(*module.get_init_inputs())
        with counter, traffic:
            out = model(*given)
    tensors = [*given, *model.parameters(), *(out if isinstance(out, (tuple, list)) else (out,))]
    held = sum(value.numel() * value.element_size() for value in tensors if isinstance(value, torch.Tensor))
    return Cost(held=held, moved=traffic.bytes + held, flops=counter.get_total_flops())


def scaled(text: str, budget: Budget, load: Callable[[str, str], ModuleType]) -> tuple[str, dict[Knob, int]]:
    """The text within the budget, and the numbers that were changed. BadInput where halving them does not suffice."""
    found = [knob for knob in knobs(text) if not _KEPT.search(knob.name)]
    values = {knob: knob.value for knob in found}
    try:
        now = cost(load(text, "scaled"))
    except BadInput:
        raise
    except Exception:  # a module that asks for values, which meta tensors have none of
        return _blindly(text, values)
    stuck: set[Knob] = set()
    while now.excess(budget) > 1:
        knob = _next(values, stuck)
        if knob is None and now.excess(budget) <= _BEARABLE:
            break
        if knob is None:
            raise BadInput(
                f"expected sizes that can be halved until one call fits ({budget.held >> 20} MiB held, {budget.moved >> 20} MiB "
                f"moved, {budget.flops:.2g} FLOP), found {now.held >> 20} MiB, {now.moved >> 20} MiB, {now.flops:.2g} FLOP left. "
                "Name the sizes as whole numbers at the top level of the file, or make them smaller."
            )
        halved = _halved(text, values, knob, load, now, budget)
        if halved is None:
            stuck.add(knob)
        else:
            values, now = halved
    return with_values(text, values), {knob: value for knob, value in values.items() if value != knob.value}


def _halved(
    text: str, values: dict[Knob, int], knob: Knob, load: Callable[[str, str], ModuleType], now: Cost, budget: Budget
) -> tuple[dict[Knob, int], Cost] | None:
    """One number halved, else all that are equal to it; None where the module does not work so, or costs no less."""
    half = -(-values[knob] // 2)
    alike = {each: half for each, value in values.items() if value == values[knob]}
    for changed in ({knob: half}, alike):
        tried = {**values, **changed}
        then = _cost_or_none(load, with_values(text, tried))
        if then is None:
            continue
        if then.excess(budget) < now.excess(budget) or then.moved < now.moved:
            return tried, then
    return None


def _cost_or_none(load: Callable[[str, str], ModuleType], text: str) -> Cost | None:
    """The cost of a text, None where its sizes do not go together."""
    try:
        return cost(load(text, "scaled"))
    except Exception:
        return None


def _next(values: dict[Knob, int], stuck: set[Knob]) -> Knob | None:
    """The batch first, for it changes nothing of what is computed per element; then the largest number."""
    free = [knob for knob in values if knob not in stuck]
    batch = [knob for knob in free if _BATCH.search(knob.name) and values[knob] > _LEAST_BATCH]
    others = [knob for knob in free if values[knob] > _LEAST]
    ordered = batch or sorted(others, key=lambda knob: values[knob], reverse=True)
    return ordered[0] if ordered else None


def _blindly(text: str, values: dict[Knob, int]) -> tuple[str, dict[Knob, int]]:
    changed = {knob: min(value, _LEAST_BATCH) for knob, value in values.items() if _BATCH.search(knob.name)}
    return with_values(text, {**values, **changed}), {k: v for k, v in changed.items() if v != k.value}
