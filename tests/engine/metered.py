"""Made-up kernels with made-up meters: what a run by energy or heat is told, so that it is tested without a GPU. Measures nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gpusolver.engine.executor import Observation, Question
from gpusolver.events.model import Heat, Objective, Stage

from .support import TF32_ERROR, TF32_LINE, FakeExecutor, Kernel, matmul_story

ENERGY = Objective(by="energy", bound=2.0)
THERMAL = Objective(
    by="thermal", bound=2.0, heat=Heat(calls_per_s=2000.0, idle_w=75.0, stages=(Stage(k_per_w=0.05, tau_s=2.0),))
)
"""500 us a call: every kernel of the story keeps up."""
CALLS = 1000
Watts = Callable[[str], int]


def frugal_story(text: str) -> Kernel:
    """The matmul's kernels, but TF32 makes the scalar one a tenth slower, and another kernel."""
    if "tl.dot(" in text or "def operation" in text or TF32_LINE not in text.split("\n"):
        return matmul_story(text)
    plain = matmul_story(text)
    return msgspec.structs.replace(plain, ns=330_000, code="scalar tf32", errors=TF32_ERROR)


def watts(text: str) -> int:
    """Tiles draw 900 W (82 us: 74 mJ a call; 55 us in TF32: 49 mJ), the scalar kernel 200 W (300 us: 60 mJ), in TF32 120 W (330 us: 40 mJ)."""
    if "tl.dot(" in text:
        return 900
    return 120 if TF32_LINE in text.split("\n") and "def operation" not in text else 200


class MeteredExecutor(FakeExecutor):
    """Energies beside the times of every pair, where they are asked for; `without` says for which sources the meter stands still."""

    def __init__(
        self,
        kernels: Callable[[str], Kernel] = frugal_story,
        drawn: Watts = watts,
        without: Callable[[str], bool] = lambda text: False,
        **more: Any,
    ) -> None:
        super().__init__(kernels, **more)
        self._drawn, self._without = drawn, without

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        seen = super().compare(question, left, right, blocks, first)
        if not question.energy or seen.status != "ok" or self._without(right):
            return seen
        content = msgspec.json.decode(seen.artifacts["samples"])
        noise = iter(self._noise(question, f"energy {left}", 4 * blocks))
        content["energy"] = [
            [self._batch(text, next(noise)) for text in (left, right, right, left)] for _ in range(blocks)
        ]
        return msgspec.structs.replace(seen, artifacts={"samples": msgspec.json.encode(content)})

    def _batch(self, text: str, noise: int) -> dict[str, int]:
        """A thousand calls at the story's power, a thousandth more or less."""
        us = self._kernels(text).ns / 1000
        millijoules = round(self._drawn(text) * us * CALLS / 1000)
        return {
            "millijoules": millijoules + noise * millijoules // 2000,
            "calls": CALLS,
            "milliseconds": round(us * CALLS / 1000),
        }
