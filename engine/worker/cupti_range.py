"""Hardware counters of a call in this process: over the whole call, or kernel by kernel. Never imports torch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from . import cupti_abi as abi
from .cupti_library import CountersUnavailable
from .cupti_session import Setup

_RANGE = b"call"
Action = Callable[[], object]


def whole_call(
    setup: Setup, call: Action, before_pass: Action, synchronise: Action, cache: str = "cold"
) -> dict[str, Any]:
    """The `counters` artifact of one call, run once per pass; `setup` is in user-range mode.

    The range covers every kernel of the call and the gaps between them: use counts and `_active` ratios, not `_elapsed`
    ones and not its duration. No memory is restored between passes, so the call must be repeatable. `before_pass` brings
    the device into the state that `cache` names (cold: flush the L2) and waits for it.
    Errors of `call` pass through and the next collection starts afresh; CUPTI's own raise CountersUnavailable.
    """
    began = time.perf_counter()
    setup.select()
    done, count = False, 0
    while not done:
        if count > setup.passes:
            raise CountersUnavailable(f"{count} passes run, {setup.passes} expected, and CUPTI still asks for more")
        before_pass()
        done = _pass(setup, call, synchronise)
        count += 1
    found = setup.decode()
    if len(found) != 1:
        raise CountersUnavailable(f"one range expected, CUPTI kept {len(found)} and dropped none")
    return _artifact(setup, count, cache, began) | {"metrics": found[0]}


def each_kernel(setup: Setup, call: Action, synchronise: Action) -> dict[str, Any]:
    """The `kernels` artifact of one call; `setup` is in kernel-replay mode. Its memory is restored, its caches are warm.

    CUPTI replays each kernel as it is launched, so the call runs once. Errors as in `whole_call`.
    """
    began = time.perf_counter()
    synchronise()
    setup.select()
    setup.session.ask("cuptiRangeProfilerStart")
    try:
        call()
        synchronise()
    except BaseException:
        with contextlib.suppress(CountersUnavailable):
            setup.session.stop()
        raise
    done = setup.session.stop()
    found = setup.decode()
    if not done or not found:
        raise CountersUnavailable(f"every pass of every kernel expected, CUPTI kept {len(found)} kernels, done: {done}")
    return _artifact(setup, setup.passes, "warm", began) | {"kernels": found}


def _artifact(setup: Setup, passes: int, cache: str, began: float) -> dict[str, Any]:
    facts = {"collector": setup.mode.collector, "passes": passes, "chip": setup.session.chip, "cache": cache}
    return {**facts, "wall_s": time.perf_counter() - began}


def _pass(setup: Setup, call: Action, synchronise: Action) -> bool:
    """One replay of the call; True when CUPTI has all that it needs."""
    session = setup.session
    session.ask("cuptiRangeProfilerStart")
    try:
        session.cupti.call(
            "cuptiRangeProfilerPushRange", abi.PushRange(pRangeProfilerObject=session.handle, pRangeName=_RANGE)
        )
        call()
    except BaseException:
        for end in (lambda: session.ask("cuptiRangeProfilerPopRange"), session.stop):
            with contextlib.suppress(CountersUnavailable):
                end()
        raise
    session.ask("cuptiRangeProfilerPopRange")
    done = session.stop()
    synchronise()
    return done
