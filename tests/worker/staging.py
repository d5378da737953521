"""Draws in an arena of the test's own, for the worker's code called in this process. Holds no expectation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from gpusolver.engine.worker import arena
from gpusolver.engine.worker.protocol import Draw, Staged

TOOK: list[int] = []
"""What sources of a test say that their calls took; they import this module."""


@contextmanager
def staged(inputs: Sequence[torch.Tensor], outputs: int) -> Iterator[tuple[arena.Memory, Staged]]:
    """One draw for each tensor, with so many places of its own shape for outputs, filled with NaN."""
    memory = arena.create(False, 4096 * (1 + outputs) * len(inputs))
    draws, offset = [], 0
    for index, value in enumerate(inputs):
        places, offset = arena.layout([(value.shape, value.stride(), value.dtype)] * (1 + outputs), offset)
        memory.at(places[0]).copy_(value)
        for place in places[1:]:
            memory.at(place).fill_(float("nan"))
        draws.append(Draw(index=index, inputs=(places[0],), outputs=tuple(places[1:])))
    try:
        yield memory, Staged(arena=memory.arena, draws=tuple(draws))
    finally:
        arena.close(memory)
