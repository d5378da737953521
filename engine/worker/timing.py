"""Collects timing samples: ABBA blocks of two kernels, and sweeps. Returns raw nanoseconds and judges nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from . import arena, switches
from .checking import deliver, opened
from .device import HOLD_US_MAX, AnyDevice
from .inputs import Inputs, copies, draw
from .loading import load_run
from .metering import energies
from .protocol import Call, Compare, Draw, Reply, Subject, Sweep
from .telemetry import telemetry

_WARM_UP_CALLS = 5
Run = Callable[..., Any]


def host_us(device: AnyDevice, run: Run, inputs: Inputs) -> float:
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


class Arm:
    """One side of a comparison: a source, how long its calls take to queue, and the switches that it left otherwise than strict."""

    def __init__(self, device: AnyDevice, source: str, inputs: Inputs) -> None:
        self._device, self.run, self.left = device, load_run(source), switches.strict_values()
        self.hold_us = host_us(device, self.run, copies(inputs))

    def sample(self, memory: arena.Memory, one: Draw, place: int, hold_us: float) -> int:
        """Nanoseconds of one cold call under strict switches, on inputs in new memory; its output goes into a place of the draw.

        Every sample comes first after its inputs: a call right after new ones is slower, by 7 % on a kernel of 5 us.
        """
        device, inputs = self._device, copies(tuple(memory.at(each) for each in one.inputs))
        device.synchronize()
        made: list[Any] = []
        with switches.strict(self.left):
            taken = device.time_ns(lambda: made.append(self.run(*inputs)), hold_us)
        if place < len(one.outputs):
            deliver(made.pop(), memory, one.outputs[place])
        return taken


_ARMS: dict[str, Arm] = {}


def _arm(device: AnyDevice, source: str, memory: arena.Memory, one: Draw) -> Arm:
    """The arm of a source, warmed up once in this process."""
    if source not in _ARMS:
        _ARMS[source] = Arm(device, source, tuple(memory.at(each) for each in one.inputs))
    return _ARMS[source]


def compare(device: AnyDevice, request: Compare) -> Reply:
    """The `samples` artifact of two sources. No arm meets the switches that another one left."""
    memory, draws = opened(request.staged), request.staged.draws
    arms = [_arm(device, source, memory, draws[0]) for source in (request.left, request.right)]
    hold_us = max(arm.hold_us for arm in arms)
    stood, before = switches.read(), telemetry(device) if request.before else {}
    began = time.perf_counter()
    blocks = [
        _block(arms, memory, draws[2 * i], draws[2 * i + 1], hold_us, swapped=(request.first + i) % 2 == 1)
        for i in range(len(draws) // 2)
    ]
    device.synchronize()
    spent, after = time.perf_counter() - began, telemetry(device) if request.after else {}
    named = {"before": stood, "left": arms[0].left, "right": arms[1].left}
    facts = {"before": before, "after": after, "switches": {side: switches.words(s) for side, s in named.items()}}
    if request.energy:  # last, so that the times are as cold and as cool as those of a run by latency
        sides = [(arm.run, arm.left) for arm in arms]
        facts["energy"] = energies(device, sides, memory, draws, request.first)
    content = _samples(device, blocks=blocks, first=request.first, hold_us=hold_us, wall_s=spent, **facts)
    return Reply(status="ok", artifacts={"samples": content})


def _block(arms: list[Arm], memory: arena.Memory, one: Draw, other: Draw, hold_us: float, swapped: bool) -> list[int]:
    """(a, b, b, a) of one block: the first two on one draw, the last two on another; where `swapped`, measured as b, a, a, b."""
    outer, inner = (1, 0) if swapped else (0, 1)
    first, second = (arms[side].sample(memory, one, side, hold_us) for side in (outer, inner))
    third, last = (arms[side].sample(memory, other, side, hold_us) for side in (inner, outer))
    return [second, first, last, third] if swapped else [first, second, third, last]


def call_all(device: AnyDevice, request: Call) -> Reply:
    """Call a source once on every staged draw. The engine holds the watch: nothing that is read here is believed."""
    memory, run = opened(request.staged), load_run(request.source)
    with switches.strict():
        for one in request.staged.draws:
            deliver(run(*(memory.at(each) for each in one.inputs)), memory, one.outputs[request.place])
        device.synchronize()
    return Reply(status="ok")


def warm(device: AnyDevice, subject: Subject, source: str, blocks: int = 10) -> bytes:
    """The `samples` artifact of a source against itself on one set of inputs that stays in the caches: no flush."""
    run, inputs = load_run(source), draw(device, subject, 0)
    hold = host_us(device, run, inputs)
    before, began = telemetry(device), time.perf_counter()

    def sample() -> int:
        with switches.strict():
            return device.time_ns(lambda: run(*inputs), hold, flush=False)

    for _ in range(_WARM_UP_CALLS):
        sample()  # what the telemetry's load displaced comes back
    taken = [[sample() for _ in range(4)] for _ in range(blocks)]
    facts = {"wall_s": time.perf_counter() - began, "before": before, "after": telemetry(device)}
    return _samples(device, cache="warm", blocks=taken, hold_us=hold, **facts)


def sweep(device: AnyDevice, request: Sweep) -> Reply:
    """The `sweep` artifact: the sources' samples taken in turn, so that drift meets all of them alike."""
    memory, draws = opened(request.staged), request.staged.draws
    arms = [_ready(device, source, memory, draws[0]) for source in request.sources]
    taken: list[list[int] | None] = [None if arm is None else [] for arm in arms]
    began = time.perf_counter()
    for one in draws:
        for times, arm in zip(taken, arms, strict=True):
            if times is not None and arm is not None:
                times.append(arm.sample(memory, one, len(one.outputs), arm.hold_us))
    facts = {"clock": device.clock, "cache": device.cache, "wall_s": time.perf_counter() - began}
    content = msgspec.json.encode({"unit": "ns", "samples": taken, **facts})
    return Reply(status="ok", artifacts={"sweep": content})


def _ready(device: AnyDevice, source: str, memory: arena.Memory, one: Draw) -> Arm | None:
    """A configuration that compiles and runs; None for one that does not (too much shared memory)."""
    try:
        return _arm(device, source, memory, one)
    except BaseException:  # a source may also raise SystemExit
        device.synchronize()  # raises again where the context is lost, which ends this worker
        return None


def _samples(device: AnyDevice, **content: Any) -> bytes:
    return msgspec.json.encode({"clock": device.clock, "cache": device.cache, "unit": "ns"} | content)
