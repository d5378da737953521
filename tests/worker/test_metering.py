"""Energies of blocks against a made-up counter and a made-up device: how long a window is, what counts as a call, whose batch is whose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch
from msgspec.structs import replace

from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import register
from gpusolver.engine.worker import metering, switches
from gpusolver.engine.worker.device import CpuDevice
from gpusolver.engine.worker.energy import counter
from gpusolver.engine.worker.metering import Batch, block, window
from gpusolver.engine.worker.refusals import ExtraUnsupported
from gpusolver.events.errors import BadInput

from ..engine.candidates import open_worker
from ..engine.metered import ENERGY
from ..engine.support import FakeExecutor, request
from .staging import staged


class World:
    """A device of 600 W whose calls end in batches of 20 ms; each step takes 1.7 ms, and the counter shows the last 100 ms mark."""

    def __init__(self, call_s: float) -> None:
        self.now, self.call_s, self._began = 0.05, call_s, 0.0
        self._batch = max(1, round(0.02 / call_s))

    def begin(self) -> None:
        self._began = self.now

    def step(self) -> int:
        self.now += 0.0017
        return self._ended()

    def pace_s(self) -> float:
        return self.call_s if self.now - self._began > 2 * self._batch * self.call_s else 0.0

    def read(self) -> int:
        return round(1000 * 600 * (int(self.now * 10) / 10))

    def _ended(self) -> int:
        return int(self.now / (self._batch * self.call_s)) * self._batch


@pytest.mark.parametrize(("call_s", "least"), [(5e-6, 0.3), (4e-3, 0.4), (0.05, 1.0), (0.3, 1.0)])
def test_a_window_has_a_hundred_calls_or_a_second(call_s: float, least: float) -> None:
    """600 W for a call of that long; batches of 20 ms would be off by 7 % in 0.3 s, the pace is off by half a call at most."""
    world = World(call_s)
    found = window(world, world.read, lambda: world.now)
    seconds = found["milliseconds"] / 1000
    assert least <= seconds <= least + 0.12 + call_s
    assert found["calls"] == pytest.approx(seconds / call_s, abs=0.5)
    assert found["millijoules"] / found["milliseconds"] == pytest.approx(600.0, rel=7e-3)


@pytest.mark.parametrize(("swapped", "order"), [(False, "abba"), (True, "baab")])
def test_a_block_is_told_as_abba_whoever_went_first(swapped: bool, order: str) -> None:
    asked: list[str] = []

    def side(name: str) -> Callable[[Callable[[], int]], Batch]:
        def batch(read: Callable[[], int]) -> Batch:
            asked.append(name)
            return {"millijoules": read(), "calls": "ab".index(name), "milliseconds": len(asked)}

        return batch

    found = block([side("a"), side("b")], lambda: 7, swapped)
    assert "".join(asked) == order
    assert [each["calls"] for each in found] == [0, 1, 1, 0]
    assert [each["milliseconds"] for each in found] == ([2, 1, 4, 3] if swapped else [1, 2, 3, 4])


def test_the_stand_in_has_no_meter() -> None:
    with pytest.raises(ExtraUnsupported, match="no energy counter"):
        counter(CpuDevice())


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


def test_a_run_by_energy_is_refused_before_it_is_registered(executor: LocalExecutor) -> None:
    executor.check(register("run1", request("on"), FakeExecutor()))
    with pytest.raises(
        BadInput, match=r"--objective energy: expected a device whose energy can be read.*no energy counter"
    ):
        executor.check(register("run1", replace(request("on"), objective=ENERGY), FakeExecutor()))


class StandIn:
    """In the place of the device's feed: calls at once."""

    def __init__(self, device: object, call: Callable[[], None]) -> None:
        self._call = call
        call()

    def once(self) -> None:
        self._call()


def honest(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def remembering(x: torch.Tensor, known: dict[int, torch.Tensor] = {}) -> torch.Tensor:  # noqa: B006 - that is its trick
    return known.setdefault(x.data_ptr(), x * 2).clone()


@pytest.mark.parametrize(("run", "right"), [(honest, True), (remembering, False)])
def test_a_kernel_that_remembers_its_answer_is_wrong_in_the_end(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[torch.Tensor], torch.Tensor], right: bool
) -> None:
    """Its warm calls would draw nothing: other values in the same memory show it, in the place that the referee looks at."""
    monkeypatch.setattr(metering, "Feed", StandIn)
    with staged([torch.ones(4), torch.full((4,), 5.0)], 2) as (memory, draws):
        one, other = draws.draws
        side = metering.Side(CpuDevice(), run, switches.strict_values(), memory, one)
        side.prove(other, 1)
        assert bool((memory.at(other.outputs[1]) == 10.0).all()) == right
        assert bool(torch.isnan(memory.at(other.outputs[0])).all())
