"""Reads hardware counters over one call: CUPTI in process, ncu where that fails, none where the driver forbids both."""

from __future__ import annotations

import pathlib
import sys
import tempfile

import msgspec

from ...profilers.metrics import CHIPS, for_chip
from . import switches
from .cupti_library import CountersUnavailable
from .cupti_range import RangeCounters
from .device import AnyDevice
from .loading import load_run
from .protocol import Count, Reply
from .timing import draw

_NCU_LIMIT_S = 50.0
# Opened once and left on: timings with the profiler enabled agree with those without, opening costs a second.
_OPEN: dict[tuple[str, ...], RangeCounters] = {}


def count(device: AnyDevice, request: Count) -> Reply:
    """The `counters` artifact of one call; status `counters_<reason>` where no collector can read them."""
    if device.name != "cuda":
        return Reply(status="counters_unsupported", text="the CPU stand-in has no counters")
    import torch

    major, minor = torch.cuda.get_device_capability()
    chip = CHIPS.get(f"{major}.{minor}", "")
    metrics = for_chip(chip, request.metrics)
    try:
        return _counted(_by_cupti(device, request, metrics))
    except CountersUnavailable as refused:
        if refused.reason == "permission":
            return Reply(status="counters_permission", text=str(refused))
        first = str(refused)
    _close()  # ncu cannot profile a device whose counters this process holds
    try:
        return _counted(_by_ncu(request, metrics, chip))
    except CountersUnavailable as refused:
        return Reply(status=f"counters_{refused.reason}", text=f"CUPTI: {first}; ncu: {refused}")


def _counted(content: dict[str, object]) -> Reply:
    return Reply(status="ok", artifacts={"counters": msgspec.json.encode(content)})


def _by_cupti(device: AnyDevice, request: Count, metrics: tuple[str, ...]) -> dict[str, object]:
    run = load_run(request.source)
    inputs = draw(device, request.subject, 0)
    switches.reset()
    run(*inputs)  # compiled and loaded before the first pass
    device.synchronize()
    if metrics not in _OPEN:
        _close()
        _OPEN[metrics] = RangeCounters(metrics, device.synchronize)

    def before_pass() -> None:
        device.flush()
        device.synchronize()

    return _OPEN[metrics].collect(lambda: run(*inputs), before_pass)


def _close() -> None:
    while _OPEN:
        _OPEN.popitem()[1].close()


def _by_ncu(request: Count, metrics: tuple[str, ...], chip: str) -> dict[str, object]:
    from . import ncu

    with tempfile.TemporaryDirectory(prefix="gpusolver-count-") as folder:
        path = pathlib.Path(folder, "request")
        path.write_bytes(msgspec.msgpack.encode(request))
        command = [sys.executable, "-m", "gpusolver.engine.worker.once", str(path)]
        return ncu.collect(command, metrics, chip, _NCU_LIMIT_S).counters
