"""Reads clocks, temperature, power and throttle reasons from NVML where it is there. Facts for people; never set."""

from __future__ import annotations

from typing import Any

_HANDLE: list[Any] = []


def telemetry() -> dict[str, float]:
    """SM clock (MHz), temperature (C), power (W), throttle reason bits; an empty mapping where NVML is absent."""
    try:
        import pynvml

        if not _HANDLE:
            import torch

            pynvml.nvmlInit()
            # By UUID: NVML's indices ignore CUDA_VISIBLE_DEVICES.
            uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
            _HANDLE.append(pynvml.nvmlDeviceGetHandleByUUID(uuid))
        handle = _HANDLE[0]
        return {
            "sm_clock_mhz": float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "temperature_c": float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
            "throttle_bits": float(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        }
    except Exception:
        return {}
