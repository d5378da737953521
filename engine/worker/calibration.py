"""Measures the device's ceilings (copies through DRAM and L2, library matrix products) and reads its limits. Returns raw samples only."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from . import switches
from .device import AnyDevice
from .telemetry import telemetry

_COPY_BYTES, _GEMM_SIDE, _REPEATS = 1 << 30, 8192, 15
_L2_BYTES, _L2_COPIES = 16 << 20, 32


def calibrate(device: AnyDevice) -> bytes:
    """The `calibration` artifact: bytes read plus written per copy, FLOP per product, their times (ns), and `limits` on a GPU."""
    on_gpu = device.name == "cuda"
    with switches.strict():
        content: dict[str, Any] = {"copy": _copy(device, _COPY_BYTES if on_gpu else 1 << 22)}
        content["l2"] = _l2(device, _l2_size(device))
        side = _GEMM_SIDE if on_gpu else 64
        for name, dtype, tf32 in (
            ("fp32", torch.float32, False),
            ("tf32", torch.float32, True),
            ("bf16", torch.bfloat16, False),
        ):
            content[f"gemm_{name}"] = _gemm(device, side, dtype, tf32)
    if on_gpu:
        content["limits"] = limits()
    return msgspec.json.encode({**content, "clock": device.clock, "telemetry": telemetry(device)})


def _copy(device: AnyDevice, size: int) -> dict[str, object]:
    source = torch.randn(size // 4, device=device.torch_device)
    target = torch.empty_like(source)
    times = [device.time_ns(lambda: target.copy_(source), 0.0) for _ in range(_REPEATS + 3)][3:]
    return {"bytes": 2 * size, "ns": times}


def _l2_size(device: AnyDevice) -> int:
    """Bytes of which source and target together fill at most half of the L2: what stays in it whatever its hash does."""
    if device.name != "cuda":
        return 1 << 16
    l2 = torch.cuda.get_device_properties(device.torch_device).L2_cache_size
    return min(_L2_BYTES, l2 // 4) & ~0xFFFF or 1 << 16


def _l2(device: AnyDevice, size: int) -> dict[str, object]:
    """Copies back to back, one time a run of them: per copy an event pair would count the launch."""
    source = torch.randn(size // 4, device=device.torch_device)
    target = torch.empty_like(source)

    def copies() -> None:
        for _ in range(_L2_COPIES):
            target.copy_(source)

    runs = [device.time_ns(copies, 1000.0, flush=False) for _ in range(_REPEATS + 3)][3:]
    return {"bytes": 2 * size, "ns": [max(1, round(total / _L2_COPIES)) for total in runs]}


def _gemm(device: AnyDevice, side: int, dtype: torch.dtype, tf32: bool) -> dict[str, object]:
    # Random operands: products of zeros draw less power and run faster than real ones.
    a, b = (torch.randn(side, side, device=device.torch_device).to(dtype) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        times = [device.time_ns(lambda: a @ b, 0.0) for _ in range(8)][3:]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    return {"flop": 2 * side**3, "ns": times}


def limits() -> dict[str, int]:
    """What one multiprocessor holds, and how many there are, as the driver says: threads in warps, shared memory in bytes."""
    from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    names = driver.CUdevice_attribute
    device = _checked(driver.cuCtxGetDevice())

    def ask(name: str) -> int:
        return int(_checked(driver.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), device)))

    return {
        "sms": ask("MULTIPROCESSOR_COUNT"),
        "warps_per_sm": ask("MAX_THREADS_PER_MULTIPROCESSOR") // ask("WARP_SIZE"),
        "blocks_per_sm": ask("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        "registers_per_sm": ask("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        "shared_per_sm": ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        "shared_reserved": ask("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        "sm_clock_mhz": ask("CLOCK_RATE") // 1000,
    }


def _checked(result: tuple[Any, ...]) -> Any:
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA driver call failed: {result[0]!r}")
    return result[1]
