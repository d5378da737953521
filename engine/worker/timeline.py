"""When a call's kernels ran, and which operator's they were, from torch's profiler (CUPTI activity records). Judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import torch

from . import switches
from .device import AnyDevice
from .inputs import draw
from .loading import load_run
from .protocol import Extra
from .refusals import ExtraFailed
from .timing import host_us

CALLS = 7
_OPERATOR_CALLS = 3
_HOLD = "spin_kernel"


class Activity(NamedTuple):
    """One piece of work on the device: ns since the profiler's epoch."""

    start: int
    end: int
    name: str


def timeline(device: AnyDevice, request: Extra) -> bytes:
    """The `timeline` artifact: 7 cold calls, each flushed, held and waited for as in the timing protocol."""
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    hold = host_us(device, run, inputs)

    def calls() -> None:
        for _ in range(CALLS):
            with switches.strict():
                device.flush()
                device.hold(hold)
                run(*inputs)
                device.synchronize()

    def plain() -> None:
        for _ in range(_OPERATOR_CALLS):
            with switches.strict():
                run(*inputs)
                device.synchronize()

    found = attribute(_activities(calls), CALLS)
    first = min(work.start for call in found for work in call)
    shown = [[[work.start - first, work.end - first, work.name] for work in call] for call in found]
    facts = {"collector": "torch_profiler", "hold_us": hold, "operator_calls": _OPERATOR_CALLS}
    return msgspec.json.encode({**facts, "calls": shown, "operators": _operators(plain)})


def attribute(activities: Sequence[Activity], calls: int) -> list[list[Activity]]:
    """The work of each call, in order of start: what lies between its hold and the next flush.

    A call may hold kernels like those of the flush, so the flush is known by what precedes the first hold and by nothing
    else: that many pieces, of those names, before every hold. Raises ExtraFailed where the record does not fit this.
    """
    order = sorted(activities)
    holds = [index for index, work in enumerate(order) if _HOLD in work.name]
    if len(holds) != calls:
        raise ExtraFailed(f"{calls} calls were held, the profiler saw {len(holds)} holds among {len(order)} activities")
    flush = [work.name for work in order[: holds[0]]]
    found = []
    for hold, following in zip(holds, [*holds[1:], len(order) + len(flush)], strict=True):
        end = following - len(flush)
        if following <= len(order) and [work.name for work in order[end:following]] != flush:
            raise ExtraFailed(f"expected the flush ({', '.join(flush)}) before a hold, found other work")
        found.append(order[hold + 1 : max(end, hold + 1)])
    counts = sorted({len(call) for call in found})
    if len(counts) != 1 or counts[0] == 0 or any(work.end <= work.start for call in found for work in call):
        raise ExtraFailed(f"expected the same work in every call, the profiler saw {counts} kernels a call")
    return found


def _activities(calls: Callable[[], None]) -> list[Activity]:
    """Everything that the device did during the calls, copies and fills of memory too."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        calls()
    results: Any = profiler.profiler
    events = [e for e in results.kineto_results.events() if _on_gpu(e.device_type())]
    return [Activity(e.start_ns(), e.start_ns() + e.duration_ns(), e.name()) for e in events]


def _operators(calls: Callable[[], None]) -> list[list[Any]] | None:
    """Device time (ns) of each framework operator's own kernels, largest first; None where no operator ran any."""
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profiler:
        calls()
    times: dict[str, int] = {}
    for event in profiler.key_averages():
        own = round(1000 * event.self_device_time_total)
        if own > 0 and not _on_gpu(event.device_type) and event.key.startswith("aten::"):
            times[event.key] = times.get(event.key, 0) + own
    return [[name, own] for name, own in sorted(times.items(), key=lambda entry: (-entry[1], entry[0]))] or None


def _on_gpu(kind: Any) -> bool:
    return str(kind).endswith("CUDA")
