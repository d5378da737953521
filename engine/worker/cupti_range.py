"""Hardware counters of a call in this process, by one replayed user range. Never imports torch and never times."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from . import cupti_abi as abi
from .cupti_host import Host, metric_names, supported
from .cupti_library import CountersUnavailable, Cupti, load

_RANGE = b"call"


class RangeCounters:
    """The GPU's counters around calls in the current CUDA context; make one per worker and leave it open.

    The range covers every kernel of the call, and the gaps between them: use counts and `_active` ratios, not
    `_elapsed` ones and not its duration. No memory is restored between passes, so the call must be repeatable.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        synchronise: Callable[[], object],
        device: int = 0,
        cupti: Cupti | None = None,
    ) -> None:
        """`synchronise` waits for the device; `device` is the index among visible GPUs. The calling thread's context is used.

        Raises CountersUnavailable and leaves nothing enabled.
        """
        self._cupti = cupti or load()
        self._synchronise = synchronise
        self._asked = tuple(metrics)
        with contextlib.ExitStack() as stack:
            self._initialise(stack, device)
            self._enable(stack)
            self._cleanup = stack.pop_all()

    def _initialise(self, stack: contextlib.ExitStack, device: int) -> None:
        self._cupti.call("cuptiProfilerInitialize", abi.Initialize())
        stack.callback(self._cupti.call, "cuptiProfilerDeInitialize", abi.Initialize())
        name = abi.ChipName(deviceIndex=device)
        self._cupti.call("cuptiDeviceGetChipName", name)
        self.chip = name.pChipName.decode()
        self._known = supported(self.chip, self._asked, self._cupti)
        if not self._known:
            raise CountersUnavailable(
                f"{self.chip} knows none of the {len(self._asked)} metrics asked for", "unsupported"
            )
        self._host = stack.enter_context(Host(self.chip, self._cupti))
        if not self._host.add(self._known):
            raise CountersUnavailable(f"{self.chip} cannot take these metrics together: {', '.join(self._known)}")
        self._config = self._host.config_image()
        self.passes = self._host.passes(self._config)

    @staticmethod
    def _context() -> int | None:
        """The calling thread's CUDA context; None where there is no driver or no context."""
        try:
            driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            return None
        context = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(context))
        return context.value

    def _enable(self, stack: contextlib.ExitStack) -> None:
        # The header allows a null context for the current one; CUPTI 13.0.85 on driver 580 crashes on it.
        params = abi.Enable(ctx=self._context())
        self._cupti.call("cuptiRangeProfilerEnable", params)
        self._object = params.pRangeProfilerObject
        stack.callback(self._call, "cuptiRangeProfilerDisable")
        size = abi.CounterDataSize(
            pRangeProfilerObject=self._object,
            pMetricNames=metric_names(self._known),
            numMetrics=len(self._known),
            maxNumOfRanges=1,
            maxNumRangeTreeNodes=1,
        )
        self._cupti.call("cuptiRangeProfilerGetCounterDataSize", size)
        self._counter_data: Any = (ctypes.c_uint8 * size.counterDataSize)()

    def collect(
        self, call: Callable[[], object], before_pass: Callable[[], object], cache: str = "cold"
    ) -> dict[str, object]:
        """The `counters` artifact of one call, run once per pass.

        `before_pass` brings the device into the state that `cache` names (cold: flush the L2) and waits for it.
        Errors of `call` pass through and the next collect starts afresh; CUPTI's own raise CountersUnavailable.
        """
        self._configure()
        done, count = False, 0
        while not done:
            if count > self.passes:
                raise CountersUnavailable(f"{count} passes run, {self.passes} expected, and CUPTI still asks for more")
            before_pass()
            done = self._run_pass(call)
            count += 1
        found = self._decode()
        return {
            "collector": "cupti_user_range",
            "passes": count,
            "chip": self.chip,
            "cache": cache,
            "metrics": {name: found.get(name) for name in self._asked},
        }

    def _configure(self) -> None:
        """Empty the counter data and point the profiler at it; also drops what a failed call left behind."""
        data = self._counter_data
        self._cupti.call(
            "cuptiRangeProfilerCounterDataImageInitialize",
            abi.CounterDataInitialize(pRangeProfilerObject=self._object, counterDataSize=len(data), pCounterData=data),
        )
        self._cupti.call(
            "cuptiRangeProfilerSetConfig",
            abi.SetConfig(
                pRangeProfilerObject=self._object,
                configSize=len(self._config),
                pConfig=self._config,
                counterDataImageSize=len(data),
                pCounterDataImage=data,
                range=abi.USER_RANGE,
                replayMode=abi.USER_REPLAY,
                maxRangesPerPass=1,
                numNestingLevels=1,
                minNestingLevel=1,
                passIndex=0,
                targetNestingLevel=1,
            ),
        )

    def _run_pass(self, call: Callable[[], object]) -> bool:
        """One replay of the call; True when CUPTI has all that it needs."""
        self._call("cuptiRangeProfilerStart")
        try:
            self._cupti.call(
                "cuptiRangeProfilerPushRange", abi.PushRange(pRangeProfilerObject=self._object, pRangeName=_RANGE)
            )
            call()
        except BaseException:
            for end in (self._pop, self._stop):
                with contextlib.suppress(CountersUnavailable):
                    end()
            raise
        self._pop()
        done = self._stop()
        self._synchronise()
        return done

    def _pop(self) -> None:
        self._call("cuptiRangeProfilerPopRange")

    def _stop(self) -> bool:
        stop = abi.Stop(pRangeProfilerObject=self._object)
        self._cupti.call("cuptiRangeProfilerStop", stop)
        return bool(stop.isAllPassSubmitted)

    def _decode(self) -> dict[str, float | None]:
        decoded = abi.DecodeData(pRangeProfilerObject=self._object)
        self._cupti.call("cuptiRangeProfilerDecodeData", decoded)
        data = self._counter_data
        seen = abi.CounterDataInfo(pCounterDataImage=data, counterDataImageSize=len(data))
        self._cupti.call("cuptiRangeProfilerGetCounterDataInfo", seen)
        if decoded.numOfRangeDropped or seen.numTotalRanges != 1:
            raise CountersUnavailable(
                f"one range expected, CUPTI kept {seen.numTotalRanges} and dropped {decoded.numOfRangeDropped}"
            )
        return self._host.evaluate(data, self._known)

    def _call(self, function: str) -> None:
        self._cupti.call(function, abi.RangeObject(pRangeProfilerObject=self._object))

    def close(self) -> None:
        """Give the counters back; a second close does nothing."""
        self._cleanup.close()
