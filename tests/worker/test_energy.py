"""Energy windows against a made-up counter that moves every 100 ms, as NVML's does; no GPU is measured."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.worker.energy import Meter
from gpusolver.engine.worker.refusals import ExtraUnsupported


class World:
    """A device of 600 W that ends a call every 5 us; each step takes 1.7 ms, and the counter shows the last 100 ms mark."""

    def __init__(self, watts: float = 600.0) -> None:
        self.now, self.watts = 0.05, watts

    def step(self) -> int:
        self.now += 0.0017
        return int(self.now / 5e-6)

    def read(self) -> int:
        return round(1000 * self.watts * (int(self.now * 10) / 10))


def test_a_window_is_bounded_by_moves_of_the_counter_and_gives_the_true_power() -> None:
    world = World()
    meter = Meter(world.read, world.step, lambda: world.now)
    for _ in range(3):
        found = meter.window(2.0)
        assert 2000 <= found["milliseconds"] <= 2110
        # Moves are seen up to one step late: 1.7 ms of 2 s are 0.09 % of the power and of the calls.
        assert found["millijoules"] / found["milliseconds"] == pytest.approx(600.0, rel=2e-3)
        assert found["millijoules"] / found["calls"] == pytest.approx(600.0 * 5e-6 * 1000, rel=2e-3)
        assert all(isinstance(value, int) for value in found.values())


def test_a_counter_that_stands_still_is_no_energy_of_nothing() -> None:
    world = World()
    meter = Meter(lambda: 12345, world.step, lambda: world.now)
    with pytest.raises(ExtraUnsupported, match="stood still for 1 s under load"):
        meter.window(2.0)


def test_a_window_waits_for_a_call_to_end() -> None:
    world = World()

    def step() -> int:
        world.step()
        return int(world.now / 3.0)  # a call of 3 s

    assert Meter(world.read, step, lambda: world.now).window(2.0)["calls"] == 1
