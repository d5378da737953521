"""Says what the worker runs on: device, driver and library versions, all as text. Measures nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform

import torch

from . import counters, preload, telemetry
from .device import AnyDevice
from .protocol import Reply

_PACKAGES = ("torch", "triton", "numpy", "cuda-bindings", "nvidia-cuda-cupti", "nvidia-ml-py")


def hello(device: AnyDevice, warm: bool) -> Reply:
    """The facts; or, with `warm`, none, after everything was loaded that a first kernel would wait for."""
    if not warm:
        return Reply(status="ok", facts=facts(device))
    _warm_up(device)
    return Reply(status="ok")


def _warm_up(device: AnyDevice) -> None:
    """Touch what is loaded lazily: the flush, a copy, a random draw, a comparison, NVML, CUPTI. Not the counters, which a process in use may hold."""
    device.flush()
    value = torch.randn(1 << 10, device=device.torch_device)
    copy = torch.empty_like(value).copy_(value).fill_(float("nan"))
    torch.equal(value.nan_to_num(), copy.nan_to_num())
    telemetry.telemetry(device)
    counters.load(device)
    device.synchronize()


def facts(device: AnyDevice) -> dict[str, str]:
    """Facts of the world for `RunRegistered.environment`; `device` and `compute_capability` name the chip."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "absent"
    return found | (_cuda() if device.name == "cuda" else {"device": "cpu stand-in", "compute_capability": "0.0"})


def _cuda() -> dict[str, str]:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "device": properties.name,
        "uuid": str(properties.uuid),
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": str(properties.multi_processor_count),
        "l2_bytes": str(properties.L2_cache_size),
        "memory_bytes": str(properties.total_memory),
        "cuda": str(torch.version.cuda),
        "driver": _driver(),
        "compiler": os.environ.get(preload.NOTE, preload.DROPPED),
    }


def _driver() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    except Exception as error:
        return f"unknown ({type(error).__name__})"
