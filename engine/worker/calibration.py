"""Measures the device's ceilings: copy bandwidth first, then library matrix products. Returns raw samples only."""

from __future__ import annotations

import msgspec
import torch

from .device import AnyDevice
from .telemetry import telemetry

_COPY_BYTES, _GEMM_SIDE, _REPEATS = 1 << 30, 8192, 15


def calibrate(device: AnyDevice) -> bytes:
    """The `calibration` artifact: bytes read plus written per copy and its times; FLOP per product and its times (ns)."""
    on_gpu = device.name == "cuda"
    content = {"copy": _copy(device, _COPY_BYTES if on_gpu else 1 << 22)}
    side = _GEMM_SIDE if on_gpu else 64
    for name, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("bf16", torch.bfloat16, False),
    ):
        content[f"gemm_{name}"] = _gemm(device, side, dtype, tf32)
    return msgspec.json.encode({**content, "clock": device.clock, "telemetry": telemetry()})


def _copy(device: AnyDevice, size: int) -> dict[str, object]:
    source = torch.randn(size // 4, device=device.torch_device)
    target = torch.empty_like(source)
    times = [device.time_ns(lambda: target.copy_(source), 0.0) for _ in range(_REPEATS + 3)][3:]
    return {"bytes": 2 * size, "ns": times}


def _gemm(device: AnyDevice, side: int, dtype: torch.dtype, tf32: bool) -> dict[str, object]:
    # Random operands: products of zeros draw less power and run faster than real ones.
    a, b = (torch.randn(side, side, device=device.torch_device).to(dtype) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        times = [device.time_ns(lambda: a @ b, 0.0) for _ in range(8)][3:]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    return {"flop": 2 * side**3, "ns": times}
