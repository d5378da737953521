"""What the engine's watch covers, on a worker and a referee that are made up: calls on inputs that were never there before it began."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from gpusolver.engine.refereed import WALL_CALLS, Bout
from gpusolver.engine.worker.protocol import Arena, Asked, Call, Draw, Reply, Staged, Subject

SUBJECT = Subject(reference="", shape={}, seed=0)
FIRST_S, CALL_S = 0.3, 0.001


class Opens:
    """A worker whose first call opens memory, which takes long."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, ...]] = []

    def ask(self, message: Call, limit_s: float) -> Reply:
        time.sleep(CALL_S * len(message.staged.draws) + (0.0 if self.calls else FIRST_S))
        self.calls.append(tuple(one.index for one in message.staged.draws))
        return Reply(status="ok")


class Made(Bout):
    """A referee whose arena holds eight draws."""

    def __init__(self) -> None:
        self.arms = self  # type: ignore[assignment]
        self.there: list[int] = []

    def settle(self) -> None:
        """Nothing warms up."""

    def staged(self, subject: Subject, draws: Sequence[Asked], at_least: int = 1) -> Iterator[Staged]:
        self.there = [one.index for one in draws][:8]
        arena = Arena(kind="file", key="", size=1)
        yield Staged(arena=arena, draws=tuple(Draw(index=i, inputs=(), outputs=()) for i in self.there))

    def checked(self, subject: Subject, against: str) -> dict[str, Any]:
        assert against == "reference"
        return {"draws": [{"outputs": [{"rel_l2": float(i)}]} for i in self.there]}


def test_a_first_call_is_outside_and_all_inside_is_new_and_checked() -> None:
    """Eight calls of 1 ms: 8 ms and what the machine takes between, far from the 300 ms of the first."""
    worker = Opens()
    seen = Made()._wall(worker, SUBJECT, "", 10.0)  # type: ignore[arg-type]
    before, watched = worker.calls
    assert len(before) == 1 and len(watched) == 8 <= WALL_CALLS and not set(before) & set(watched)
    assert seen["calls"] == 8 and 8e6 <= seen["ns"] < 1e9 * FIRST_S
    assert seen["outputs"] == [{"rel_l2": float(i)} for i in watched]
