"""Which samples are flushed and what a driver's answers become, on stand-ins; no time and no limit here is a GPU's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.engine.worker import calibration, checking, timing
from gpusolver.engine.worker.device import CpuDevice
from gpusolver.engine.worker.protocol import Call, Compare, Gate, Place, Subject
from gpusolver.problems.contract import load

from . import staging
from .staging import staged

SOURCE = "import torch\n\ndef run(x):\n    return torch.softmax(x, -1)\n"
PROBLEM = load("kb_softmax")
SUBJECT = Subject(reference=PROBLEM.reference, shape=PROBLEM.small, seed=3)


class Watched(CpuDevice):
    """A CPU that notes whether each timed call was to be flushed and held."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, bool]] = []

    def time_ns(self, call: Callable[[], Any], hold_us: float, flush: bool = True) -> int:
        self.seen.append((flush, hold_us > 0))
        return super().time_ns(call, hold_us, flush)


def test_warm_samples_are_ten_blocks_of_one_source_held_and_never_flushed() -> None:
    device = Watched()
    found = json.loads(timing.warm(device, SUBJECT, SOURCE))
    assert (found["cache"], found["unit"], [len(block) for block in found["blocks"]]) == ("warm", "ns", [4] * 10)
    assert set(device.seen) == {(False, True)} and len(device.seen) > 40  # some before the first sample


def values(count: int) -> list[torch.Tensor]:
    """Tensors of one shape; the first element of number i is i."""
    return [torch.arange(i, i + 6, dtype=torch.float32).view(2, 3) for i in range(count)]


def test_samples_of_a_pair_are_each_flushed_and_held() -> None:
    device = Watched()
    with staged(values(6), 2) as (_, draws):
        reply = timing.compare(device, Compare(left=SOURCE, right=SOURCE, staged=draws, first=0))
    found = json.loads(reply.artifacts["samples"])
    assert found["cache"] == "unknown" and len(found["blocks"]) == 3
    assert device.seen == [(True, True)] * 12


class Scripted(CpuDevice):
    """A CPU whose timed calls take what the source says, and the first after a wait for the device 1000 ns more."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[int] = []
        self.fresh = False

    def synchronize(self) -> None:
        self.fresh = True  # `sample` waits for the device after it has made new inputs

    def time_ns(self, call: Callable[[], Any], hold_us: float, flush: bool = True) -> int:
        call()
        own = staging.TOOK[-1]
        self.order.append(own)
        extra, self.fresh = 1000 * self.fresh, False
        return own + extra


TAKES = "from tests.worker.staging import TOOK\n\ndef run(x):\n    TOOK.append({ns})\n    return x * {ns}\n"


def test_blocks_are_abba_and_baab_in_turn_and_every_call_is_the_first_after_new_inputs() -> None:
    """A takes 100 ns and B 200 ns: whatever the order, each block is (A, B, B, A), and all pay alike for new inputs."""
    device = Scripted()
    left, right = TAKES.format(ns=100), TAKES.format(ns=200)
    with staged(values(4), 2) as (_, draws):
        reply = timing.compare(device, Compare(left=left, right=right, staged=draws, first=4))
    found = json.loads(reply.artifacts["samples"])
    assert (found["blocks"], found["first"]) == ([[1100, 1200, 1200, 1100]] * 2, 4)
    assert device.order == [100, 200, 200, 100, 200, 100, 100, 200]


def test_each_side_of_a_pair_answers_every_draw_in_its_own_place() -> None:
    """Draw i begins with i: A returns three times that, B five times, and neither meets what the other made of its inputs."""
    source = "def run(x):\n    y = x * {times}\n    x.zero_()\n    return y\n"
    with staged(values(4), 2) as (memory, draws):
        request = Compare(left=source.format(times=3), right=source.format(times=5), staged=draws, first=0)
        assert timing.compare(CpuDevice(), request).status == "ok"
        for one, value in zip(draws.draws, values(4), strict=True):
            assert memory.at(one.inputs[0]).equal(value)
            assert memory.at(one.outputs[0]).equal(value * 3) and memory.at(one.outputs[1]).equal(value * 5)


def test_calls_without_a_clock_answer_each_draw_in_the_place_that_was_named() -> None:
    with staged(values(3), 2) as (memory, draws):
        request = Call(source="def run(x):\n    return x + 1\n", staged=draws, place=1)
        assert timing.call_all(CpuDevice(), request).status == "ok"
        for one, value in zip(draws.draws, values(3), strict=True):
            assert memory.at(one.outputs[0]).isnan().all() and memory.at(one.outputs[1]).equal(value + 1)


@pytest.mark.parametrize("key", ["x.data_ptr()", "(x.data_ptr(), x._version)", "id(x)"])
def test_the_second_draw_comes_in_the_objects_of_the_first_and_all_others_in_new_ones(key: str) -> None:
    """Draw i begins with i. An answer kept by it is the first draw's on the second, whatever the allocator does."""
    source = f"KEPT, ALIVE = {{}}, []\n\ndef run(x):\n    ALIVE.append(x)\n    return KEPT.setdefault({key}, x + 100).clone()\n"
    with staged(values(4), 2) as (memory, draws):
        assert checking.gate(CpuDevice(), Gate(source=source, staged=draws, repeats=1)).status == "ok"
        found = [memory.at(one.outputs[0])[0, 0].item() for one in draws.draws]
        assert memory.at(draws.draws[0].outputs[1])[0, 0].item() == 100
    assert found == [100, 100, 102, 103]


class Held:
    """Stands in for an arena's memory that holds one tensor."""

    def __init__(self, *shape: int) -> None:
        self.view = torch.zeros(shape)

    def at(self, place: Place) -> torch.Tensor:
        return self.view

    def takes(self, out: object, own: tuple[int, ...] = ()) -> bool:
        """Whether an output is delivered there; `own` are the strides of PyTorch's answer."""
        place = Place(offset=0, shape=tuple(self.view.shape), strides=self.view.stride(), dtype="float32", own=own)
        return checking.deliver(out, self, place)  # type: ignore[arg-type]


def test_an_output_is_delivered_by_rows_or_as_pytorchs_own_lies() -> None:
    """By columns, with gaps or repeated where PyTorch's answer is; elsewhere that is the reader's work."""
    held = Held(2, 3)
    assert held.takes(torch.ones(2, 3)) and held.takes(torch.ones(2, 3), own=(1, 2))
    assert held.takes(torch.full((3, 2), 2.0).t(), own=(1, 2)) and held.view.tolist() == [[2.0] * 3] * 2
    assert held.takes(torch.ones(2, 6)[:, ::2], own=(6, 2))
    assert held.takes(torch.full((1, 3), 5.0).expand(2, 3), own=(0, 1)) and held.view.tolist() == [[5.0] * 3] * 2
    for own in ((), (3, 1)):
        assert not held.takes(torch.ones(3, 2).t(), own)
        assert not held.takes(torch.ones(2, 6)[:, ::2], own)
        assert not held.takes(torch.ones(1, 3).expand(2, 3), own)
    assert Held(1, 3).takes(torch.ones(6)[:3].expand(1, 3), own=(3, 1))  # one row: its stride means nothing


def test_an_output_that_was_delivered_is_gone_from_the_memory_that_held_it() -> None:
    """What the caching allocator hands out next holds no answer."""
    kept, held = torch.ones(4), Held(4)
    assert held.takes(kept)
    assert held.view.tolist() == [1.0] * 4 and kept.isnan().all()
    assert not held.takes(torch.ones(()).expand(4))  # one element, repeated
    assert not held.takes(torch.ones(5)) and not held.takes(torch.ones(4).double())
    assert not held.takes([1.0] * 4) and not held.takes(torch.ones(4).to_sparse())
    assert not held.takes(torch.nn.Parameter(torch.ones(4)))
    with torch.inference_mode():
        made = torch.full((4,), 7.0)
    assert held.takes(made) and held.view.tolist() == [7.0] * 4


def test_limits_are_the_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The H200's attributes as its driver states them."""
    h200 = {
        "MULTIPROCESSOR_COUNT": 132,
        "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
        "WARP_SIZE": 32,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
        "CLOCK_RATE": 1980000,
    }
    names = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in h200})
    driver = SimpleNamespace(
        CUdevice_attribute=names,
        cuCtxGetDevice=lambda: (0, 7),
        cuDeviceGetAttribute=lambda name, device: (0, h200[name]) if device == 7 else (101, None),
    )
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=sys.modules["cuda.bindings"]))
    assert calibration.limits() == {
        "sms": 132,
        "warps_per_sm": 64,
        "blocks_per_sm": 32,
        "registers_per_sm": 65536,
        "shared_per_sm": 233472,
        "shared_reserved": 1024,
        "sm_clock_mhz": 1980,
    }
    monkeypatch.setattr(driver, "cuCtxGetDevice", lambda: (201, None))
    with pytest.raises(RuntimeError, match="201"):
        calibration.limits()
