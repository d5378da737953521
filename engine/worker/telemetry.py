"""Reads clocks, temperature, power and throttle reasons from NVML where it is there. Facts of the device; never set."""

from __future__ import annotations

import contextlib
from typing import Any

from .device import AnyDevice

_HANDLE: list[Any] = []
_LOAD_MS = 10.0


def handle() -> tuple[Any, Any]:
    """(pynvml, handle of the current CUDA device); raises whatever keeps NVML from being there."""
    import pynvml

    if not _HANDLE:
        import torch

        pynvml.nvmlInit()
        # By UUID: NVML's indices ignore CUDA_VISIBLE_DEVICES.
        uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        _HANDLE.append(pynvml.nvmlDeviceGetHandleByUUID(uuid))
    return pynvml, _HANDLE[0]


def telemetry(device: AnyDevice) -> dict[str, float]:
    """State of a busy device: SM clock (MHz), throttle reason bits, temperature (C), power (W), time throttled so far (ns).

    An idle GPU lowers its clock, which says nothing of the samples: the device is kept busy for the reading, and is
    waited for. The clock comes first, closest to the work before. Empty on the stand-in and where NVML is absent.
    """
    if device.name != "cuda":
        return {}
    device.load(_LOAD_MS)
    try:
        return _read(*handle())
    except Exception:
        return {}
    finally:
        device.synchronize()


def _read(nvml: Any, at: Any) -> dict[str, float]:
    found: dict[str, float] = {
        "sm_clock_mhz": int(nvml.nvmlDeviceGetClockInfo(at, nvml.NVML_CLOCK_SM)),
        "throttle_bits": int(nvml.nvmlDeviceGetCurrentClocksEventReasons(at)),
        "temperature_c": int(nvml.nvmlDeviceGetTemperature(at, nvml.NVML_TEMPERATURE_GPU)),
        "power_w": nvml.nvmlDeviceGetPowerUsage(at) / 1000.0,
    }
    # The bits show this instant only. The totals are facts for people: their difference is the throttling between two readings.
    for name, policy in (("power", nvml.NVML_PERF_POLICY_POWER), ("thermal", nvml.NVML_PERF_POLICY_THERMAL)):
        with contextlib.suppress(nvml.NVMLError):
            found[f"{name}_throttled_ns"] = int(nvml.nvmlDeviceGetViolationStatus(at, policy).violationTime)
    return found
