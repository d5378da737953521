"""One interface to the device that kernels run on: CUDA for measuring, CPU as the stand-in of GPU-free tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch

FLUSH_BYTES = 256 << 20
_HOLD_US_MIN, HOLD_US_MAX = 100.0, 20_000.0
_FLUSHES_PER_MS = 16  # 256 MB each: 4 TB/s, as the fastest chips read


class CpuDevice:
    """Wall-clock timing on the CPU. Its times are no measurement of any GPU; samples say `cpu_wall`, cache `unknown`."""

    name, clock, cache = "cpu", "cpu_wall", "unknown"

    def __init__(self) -> None:
        self.torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """Nothing is asynchronous here."""

    def release(self, at_least: int = 0) -> None:
        """Torch keeps no memory of a CPU back."""

    def flush(self) -> None:
        """A CPU's caches are left as they are."""

    def load(self, milliseconds: float) -> None:
        """A CPU that runs this is busy."""

    def hold(self, microseconds: float) -> None:
        """There is no stream to hold."""

    def time_ns(self, call: Callable[[], Any], hold_us: float, flush: bool = True) -> int:
        """Nanoseconds of one call."""
        start = time.perf_counter_ns()
        call()
        return time.perf_counter_ns() - start


class CudaDevice:
    """CUDA-event timing of single calls after an L2 flush, with the stream held until the whole call is queued."""

    name, clock, cache = "cuda", "cuda_event", "cold"

    def __init__(self) -> None:
        torch.cuda.init()
        self.torch_device = torch.device("cuda", torch.cuda.current_device())
        properties = torch.cuda.get_device_properties(self.torch_device)
        size = max(FLUSH_BYTES, 2 * properties.L2_cache_size)
        # Read, never written: a zero-fill would leave dirty lines whose write-back lands in the sample.
        self._buffer = torch.ones(size // 4, dtype=torch.float32, device=self.torch_device)
        self._sink = torch.empty((), dtype=torch.float32, device=self.torch_device)
        # The functions themselves, taken before any candidate is imported: patching torch later does not reach the clock.
        self._event, self._sleep, self._synchronize = torch.cuda.Event, torch.cuda._sleep, torch.cuda.synchronize
        self._record, self._elapsed = torch.cuda.Event.record, torch.cuda.Event.elapsed_time
        self._cycles_per_us = getattr(properties, "clock_rate", 1_980_000) / 1000.0

    def synchronize(self) -> None:
        """Wait for the whole device."""
        self._synchronize()

    def release(self, at_least: int = 0) -> None:
        """Give what torch keeps for later calls back to the device, where that is so many bytes: other processes need it too."""
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > at_least:
            torch.cuda.empty_cache()

    def flush(self) -> None:
        """Queue a read of a buffer of at least twice the L2, which leaves clean lines behind."""
        torch.sum(self._buffer, dim=0, out=self._sink)

    def load(self, milliseconds: float) -> None:
        """Queue reads of memory that keep the device busy for about that long."""
        for _ in range(max(1, round(milliseconds * _FLUSHES_PER_MS))):
            self.flush()

    def hold(self, microseconds: float) -> None:
        """Keep the stream busy for that long, within bounds, so that what is queued meanwhile runs without gaps of the host."""
        self._sleep(int(min(max(microseconds, _HOLD_US_MIN), HOLD_US_MAX) * self._cycles_per_us))

    def time_ns(self, call: Callable[[], Any], hold_us: float, flush: bool = True) -> int:
        """Nanoseconds between events around one call; `hold_us` covers the host's time to queue the call. Cold L2 with `flush`."""
        start, stop = self._event(enable_timing=True), self._event(enable_timing=True)
        if flush:
            self.flush()
        self.hold(hold_us)
        self._record(start)
        call()
        self._record(stop)
        self._synchronize()
        return round(self._elapsed(start, stop) * 1e6)


AnyDevice = CpuDevice | CudaDevice


def open_device() -> AnyDevice:
    """CUDA where the worker was started for it, else the CPU stand-in."""
    return CudaDevice() if os.environ.get("GPUSOLVER_WORKER_DEVICE", "cuda") == "cuda" else CpuDevice()
