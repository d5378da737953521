"""Reads hardware counters over one call: CUPTI in process, ncu where that fails, none where the driver forbids both."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from ...profilers.metrics import BASE, CHIPS, for_chip
from ...profilers.ncu_calls import DURATION
from . import switches
from .cupti_host import supported
from .cupti_library import CountersUnavailable
from .cupti_open import OpenCounters
from .cupti_range import each_kernel, whole_call
from .cupti_session import KERNEL, USER
from .device import AnyDevice
from .inputs import draw
from .loading import load_run
from .protocol import Count, Extra, Reply

_NCU_LIMIT_S = 50.0

_COUNTERS = OpenCounters()


def count(device: AnyDevice, request: Count) -> Reply:
    """The `counters` artifact of one call; status `counters_<reason>` where no collector can read them."""
    if device.name != "cuda":
        return Reply(status="counters_unsupported", text="the CPU stand-in has no counters")
    metrics = for_chip(chip(), request.metrics)
    try:
        return _counted(_by_cupti(device, request, metrics))
    except CountersUnavailable as refused:
        if refused.reason == "permission":
            return Reply(status="counters_permission", text=str(refused))
        first = str(refused)
    _COUNTERS.close()
    try:
        return _counted(_by_ncu(request, metrics))
    except CountersUnavailable as refused:
        return Reply(status=f"counters_{refused.reason}", text=f"CUPTI: {first}; ncu: {refused}")


def load(device: AnyDevice) -> None:
    """Load the library and what it knows of the chip, which holds no counters: those are opened by the first count. Nothing where there are none."""
    if device.name == "cuda":
        with contextlib.suppress(CountersUnavailable):
            supported(chip(), BASE)


def chip() -> str:
    """NVIDIA's name of the current device's chip; empty where it is not known here."""
    major, minor = torch.cuda.get_device_capability()
    return CHIPS.get(f"{major}.{minor}", "")


def kernels(device: AnyDevice, request: Extra) -> bytes:
    """The `kernels` artifact: duration and base counters, kernel by kernel. Raises CountersUnavailable."""
    call = _ready(device, request)
    metrics = for_chip(chip(), dict.fromkeys((DURATION, *BASE)))
    with switches.strict():
        found = _COUNTERS.use(metrics, KERNEL, lambda setup: each_kernel(setup, call, device.synchronize))
    return msgspec.json.encode(found)


def _counted(content: dict[str, Any]) -> Reply:
    return Reply(status="ok", artifacts={"counters": msgspec.json.encode(content)})


def _ready(device: AnyDevice, request: Count | Extra) -> Callable[[], object]:
    """The call on its inputs, compiled and loaded before the first pass."""
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    with switches.strict():
        run(*inputs)
        device.synchronize()
    return lambda: run(*inputs)


def _by_cupti(device: AnyDevice, request: Count, metrics: tuple[str, ...]) -> dict[str, Any]:
    call = _ready(device, request)

    def before_pass() -> None:
        device.flush()
        device.synchronize()

    with switches.strict():
        return _COUNTERS.use(metrics, USER, lambda setup: whole_call(setup, call, before_pass, device.synchronize))


def _by_ncu(request: Count, metrics: tuple[str, ...]) -> dict[str, Any]:
    from . import ncu

    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gpusolver-count-") as folder:
        path = pathlib.Path(folder, "request")
        path.write_bytes(msgspec.msgpack.encode([request]))
        command = [sys.executable, "-m", "gpusolver.engine.worker.once", str(path)]
        found = ncu.collect(command, metrics, chip(), _NCU_LIMIT_S).counters
    return {**found, "wall_s": time.perf_counter() - began}
