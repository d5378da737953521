"""Energy of a call, from NVML's total energy counter over windows of back-to-back warm calls. Sets no clock and no limit."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from . import switches
from .device import AnyDevice
from .inputs import draw
from .loading import load_run
from .protocol import Extra
from .refusals import ExtraUnsupported
from .telemetry import handle

_WINDOWS, _WINDOW_S, _LEAD_IN_S = 3, 2.0, 0.3
_BATCH_S, _MOST_CALLS, _IN_FLIGHT = 0.02, 2000, 4
_GIVE_UP_S = 1.0
"""The counter moves every 100 ms; one that stands still this long does not work."""


def counter(device: AnyDevice) -> Callable[[], int]:
    """Reads the device's total energy in millijoules; ExtraUnsupported where it has no such counter."""
    if device.name != "cuda":
        raise ExtraUnsupported(f"no energy counter: the {device.name} stand-in draws nothing that could be read")
    try:
        nvml, at = handle()
        nvml.nvmlDeviceGetTotalEnergyConsumption(at)
    except Exception as error:
        raise ExtraUnsupported(f"no energy counter: {type(error).__name__}: {error}") from error
    return lambda: int(nvml.nvmlDeviceGetTotalEnergyConsumption(at))


def energy(device: AnyDevice, request: Extra) -> bytes:
    """The `energy` artifact: per window the calls that ended, millijoules, milliseconds, and the temperature at its end."""
    read = counter(device)
    nvml, at = handle()
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    with switches.strict():
        feed = Feed(device, lambda: run(*inputs))
        meter = Meter(read, feed.step)
        meter.window(_LEAD_IN_S)
        windows = []
        for _ in range(_WINDOWS):
            window = meter.window(_WINDOW_S)
            degrees = int(nvml.nvmlDeviceGetTemperature(at, nvml.NVML_TEMPERATURE_GPU))
            windows.append({**window, "temperature_c": degrees})
        device.synchronize()
    return msgspec.json.encode({"windows": windows, "queued": feed.way, "calls_per_batch": feed.batch})


class Meter:
    """Reads a counter at the moments when it moves: between two of them its difference is exact, whatever its period."""

    def __init__(
        self, read: Callable[[], int], step: Callable[[], int], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`step` keeps the device busy, returns soon, and says how many calls have ended so far."""
        self._read, self._step, self._clock = read, step, clock

    def window(self, seconds: float) -> dict[str, int]:
        """Millijoules, milliseconds and ended calls from one move of the counter to the first one `seconds` later."""
        began, before, first = self._move()
        while True:
            now, energy, calls = self._move()
            if now - began >= seconds and calls > first:
                passed = round(1000 * (now - began))
                return {"calls": calls - first, "millijoules": energy - before, "milliseconds": passed}

    def _move(self) -> tuple[float, int, int]:
        """(time in s, counter in mJ, ended calls) when the counter next moves."""
        start, seen = self._clock(), self._read()
        while True:
            ended = self._step()
            found, now = self._read(), self._clock()
            if found != seen:
                return now, found, ended
            if now - start > _GIVE_UP_S:
                raise ExtraUnsupported(f"the energy counter stood still for {_GIVE_UP_S:g} s under load")


class Feed:
    """Keeps a device busy with one call, in batches of 20 ms (reading the counter takes longer than shorter ones last), and counts the calls that have ended."""

    def __init__(self, device: AnyDevice, call: Callable[[], Any]) -> None:
        """Warms up and chooses the batch. As a graph where the call can be captured: a short kernel then waits for no launch."""
        for _ in range(3):
            call()
        device.synchronize()
        single = device.time_ns(call, 0.0, flush=False) / 1e9
        self.batch = max(1, min(_MOST_CALLS, round(_BATCH_S / max(single, 1e-6))))

        def calls() -> None:
            for _ in range(self.batch):
                call()

        self._submit, self.way = _captured(device, calls)
        self._device = device
        self._queue: collections.deque[Any] = collections.deque()
        self._ended = 0
        self._first: tuple[Any, int] | None = None
        self._last: tuple[Any, int] | None = None

    def begin(self) -> None:
        """Wait for what is queued, and measure the pace anew: another kernel may have run since."""
        self._device.synchronize()
        self._ended += self.batch * len(self._queue)
        self._queue.clear()
        self._first = self._last = None

    def pace_s(self) -> float:
        """Seconds a call, by the device's events, of the batches that have ended back to back since `begin`; 0 before there are two."""
        if self._first is None or self._last is None or self._last[1] == self._first[1]:
            return 0.0
        return self._first[0].elapsed_time(self._last[0]) / 1000.0 / (self._last[1] - self._first[1])

    def once(self) -> None:
        """One batch more, the way that the others went, and wait for it."""
        self.begin()
        self._submit()
        self._device.synchronize()

    def step(self) -> int:
        """Fill the queue, and return how many calls have ended."""
        while len(self._queue) < _IN_FLIGHT:
            self._submit()
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
            self._queue.append(mark)
        while self._queue and self._queue[0].query():
            self._ended += self.batch
            self._last = self._queue.popleft(), self._ended
            self._first = self._first or self._last
        return self._ended


def _captured(device: AnyDevice, calls: Callable[[], None]) -> tuple[Callable[[], None], str]:
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            calls()
        return graph.replay, "graph"
    except Exception:
        device.synchronize()
        return calls, "calls"
