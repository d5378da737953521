"""Collects timing samples: ABBA blocks of two kernels, and sweeps. Returns raw nanoseconds and judges nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from . import switches
from .device import HOLD_US_MAX, AnyDevice
from .loading import load_reference, load_run
from .protocol import Compare, Subject, Sweep
from .telemetry import telemetry

_WARM_UP_CALLS = 5


def draw(device: AnyDevice, subject: Subject, index: int) -> tuple[torch.Tensor, ...]:
    """Fresh inputs number `index` of a subject."""
    generator = torch.Generator(device=device.torch_device).manual_seed((subject.seed + index) % (1 << 63))
    with switches.strict():
        inputs: tuple[torch.Tensor, ...] = load_reference(subject.reference).inputs(
            subject.shape, generator, device.torch_device
        )
    return inputs


def host_us(device: AnyDevice, run: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> float:
    """Warm up, and return how long to hold the stream, in us: twice the host's longest time to queue a call, and 50, within what can be held."""
    longest = 0.0
    with switches.strict():
        for call in range(_WARM_UP_CALLS):
            device.synchronize()
            start = time.perf_counter_ns()
            run(*inputs)
            if call >= 2:  # the first calls compile and load
                longest = max(longest, (time.perf_counter_ns() - start) / 1000.0)
    device.synchronize()
    return min(2.0 * longest + 50.0, HOLD_US_MAX)


def sample(
    device: AnyDevice,
    run: Callable[..., Any],
    inputs: tuple[torch.Tensor, ...],
    hold_us: float,
    left: switches.State | None = None,
    flush: bool = True,
) -> int:
    """One timed call under strict switches; `left` takes what it did to them."""
    with switches.strict(left):
        return device.time_ns(lambda: run(*inputs), hold_us, flush)


def compare(device: AnyDevice, request: Compare) -> bytes:
    """The `samples` artifact of two sources. No arm meets the switches that another one left.

    Every second block is taken as BAAB, and each begins with a call that is not kept: the first sample after new inputs
    were drawn is slower, by 7 % on a kernel of 5 us, and always falling on A it made identical kernels differ by 0.7 %.
    """
    left, right = load_run(request.left), load_run(request.right)
    inputs = draw(device, request.subject, request.first)
    hold = max(host_us(device, left, inputs), host_us(device, right, inputs))
    arms = [(left, switches.strict_values()), (right, switches.strict_values())]
    stood, before, began = switches.read(), telemetry(device), time.perf_counter()
    blocks = []
    for index in range(request.first, request.first + request.blocks):
        inputs = draw(device, request.subject, index)
        device.synchronize()
        blocks.append(_block(device, arms, inputs, hold, swapped=index % 2 == 1))
    spent, after = time.perf_counter() - began, telemetry(device)
    named = {"before": stood, "left": arms[0][1], "right": arms[1][1]}
    facts = {"before": before, "after": after, "switches": {side: switches.words(s) for side, s in named.items()}}
    return _samples(device, blocks=blocks, first=request.first, hold_us=hold, wall_s=spent, **facts)


def _block(
    device: AnyDevice,
    arms: list[tuple[Callable[..., Any], switches.State]],
    inputs: tuple[torch.Tensor, ...],
    hold_us: float,
    swapped: bool,
) -> list[int]:
    """(a, b, b, a) of one block, measured in that order, or where `swapped` as b, a, a, b."""
    outer, inner = (arms[1], arms[0]) if swapped else (arms[0], arms[1])
    sample(device, outer[0], inputs, hold_us, outer[1])
    first, second, third, last = (
        sample(device, run, inputs, hold_us, seen) for run, seen in (outer, inner, inner, outer)
    )
    return [second, first, last, third] if swapped else [first, second, third, last]


def warm(device: AnyDevice, subject: Subject, source: str, blocks: int = 10) -> bytes:
    """The `samples` artifact of a source against itself on one set of inputs that stays in the caches: no flush."""
    run, inputs = load_run(source), draw(device, subject, 0)
    hold = host_us(device, run, inputs)
    before, began = telemetry(device), time.perf_counter()
    for _ in range(_WARM_UP_CALLS):
        sample(device, run, inputs, hold, flush=False)  # what the telemetry's load displaced comes back
    taken = [[sample(device, run, inputs, hold, flush=False) for _ in range(4)] for _ in range(blocks)]
    facts = {"wall_s": time.perf_counter() - began, "before": before, "after": telemetry(device)}
    return _samples(device, cache="warm", blocks=taken, hold_us=hold, **facts)


def sweep(device: AnyDevice, request: Sweep) -> bytes:
    """The `sweep` artifact: the sources' samples taken in turn, so that drift meets all of them alike."""
    runs = [_ready(device, source, request.subject) for source in request.sources]
    taken: list[list[int] | None] = [None if ready is None else [] for ready in runs]
    began = time.perf_counter()
    for index in range(request.samples):
        inputs = draw(device, request.subject, index)
        for times, ready in zip(taken, runs, strict=True):
            if times is not None and ready is not None:
                times.append(sample(device, ready[0], inputs, ready[1]))
    facts = {"clock": device.clock, "cache": device.cache, "wall_s": time.perf_counter() - began}
    return msgspec.json.encode({"unit": "ns", "samples": taken, **facts})


def _ready(device: AnyDevice, source: str, subject: Subject) -> tuple[Callable[..., Any], float] | None:
    """A configuration that compiles and runs, with its hold time; None for one that does not (too much shared memory)."""
    try:
        run = load_run(source)
        return run, host_us(device, run, draw(device, subject, 0))
    except BaseException:  # a source may also raise SystemExit
        device.synchronize()  # raises again where the context is lost, which ends this worker
        return None


def _samples(device: AnyDevice, **content: Any) -> bytes:
    return msgspec.json.encode({"clock": device.clock, "cache": device.cache, "unit": "ns"} | content)
