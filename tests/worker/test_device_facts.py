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

from gpusolver.engine.worker import calibration, timing
from gpusolver.engine.worker.device import CpuDevice
from gpusolver.engine.worker.protocol import Compare, Subject
from gpusolver.problems.contract import load

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


def test_samples_of_a_pair_are_each_flushed_and_held() -> None:
    device = Watched()
    found = json.loads(timing.compare(device, Compare(subject=SUBJECT, left=SOURCE, right=SOURCE, blocks=3)))
    assert found["cache"] == "unknown" and len(found["blocks"]) == 3
    assert device.seen == [(True, True)] * 15  # each block begins with a call that is not kept


class Scripted(CpuDevice):
    """A CPU whose timed calls take what is written in the output, and the first after new inputs 1000 ns more."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[int] = []
        self.fresh = False

    def synchronize(self) -> None:
        self.fresh = True  # `compare` waits for the device after it has drawn

    def time_ns(self, call: Callable[[], Any], hold_us: float, flush: bool = True) -> int:
        own = int(call())
        self.order.append(own)
        extra, self.fresh = 1000 * self.fresh, False
        return own + extra


def test_blocks_are_abba_and_baab_in_turn_and_the_first_call_after_new_inputs_is_not_kept() -> None:
    """A takes 100 ns and B 200 ns: whatever the order, each block is (A, B, B, A), and nobody pays for new inputs."""
    device = Scripted()
    left, right = "def run(x):\n    return 100\n", "def run(x):\n    return 200\n"
    found = json.loads(timing.compare(device, Compare(subject=SUBJECT, left=left, right=right, blocks=2, first=4)))
    assert found["blocks"] == [[100, 200, 200, 100]] * 2
    assert device.order == [100, 100, 200, 200, 100, 200, 200, 100, 100, 200]


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
