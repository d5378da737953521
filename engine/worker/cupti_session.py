"""CUPTI's range profiler, switched on once for the current context, and metric sets made ready for it. Never imports torch and never times."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from . import cupti_abi as abi
from .cupti_host import Host, metric_names, supported
from .cupti_library import CountersUnavailable, Cupti, load


class Mode(NamedTuple):
    """How ranges are made and replayed, their target nesting level, the most of one collection, and the collector's name."""

    ranges: int
    replay: int
    level: int
    most: int
    collector: str


USER = Mode(abi.USER_RANGE, abi.USER_REPLAY, 1, 1, "cupti_user_range")
KERNEL = Mode(abi.AUTO_RANGE, abi.KERNEL_REPLAY, 0, 512, "cupti_kernel_replay")


class Session:
    """The profiler of the calling thread's CUDA context, for one metric set (OpenCounters says why)."""

    def __init__(self, device: int = 0, cupti: Cupti | None = None) -> None:
        """`device` is the index among visible GPUs. Raises CountersUnavailable and leaves nothing enabled."""
        self.cupti = cupti or load()
        with contextlib.ExitStack() as stack:
            self.cupti.call("cuptiProfilerInitialize", abi.Initialize())
            stack.callback(self.cupti.call, "cuptiProfilerDeInitialize", abi.Initialize())
            name = abi.ChipName(deviceIndex=device)
            self.cupti.call("cuptiDeviceGetChipName", name)
            self.chip = name.pChipName.decode()
            # The header allows a null context for the current one; CUPTI 13.0.85 on driver 580 crashes on it.
            params = abi.Enable(ctx=_context())
            self.cupti.call("cuptiRangeProfilerEnable", params)
            self.handle = params.pRangeProfilerObject
            stack.callback(self.ask, "cuptiRangeProfilerDisable")
            self._cleanup = stack.pop_all()

    def ask(self, function: str) -> None:
        """Call a function that takes the profiler alone."""
        self.cupti.call(function, abi.RangeObject(pRangeProfilerObject=self.handle))

    def stop(self) -> bool:
        """End a pass; True when CUPTI has all that it needs."""
        stop = abi.Stop(pRangeProfilerObject=self.handle)
        self.cupti.call("cuptiRangeProfilerStop", stop)
        return bool(stop.isAllPassSubmitted)

    def close(self) -> None:
        """Give the counters back; a second close does nothing."""
        self._cleanup.close()


def _context() -> int | None:
    """The calling thread's CUDA context; None where there is no driver or no context."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    context = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    return context.value


class Setup:
    """One metric set in one mode, ready for a session: its schedule and its memory. A context, or close()."""

    def __init__(self, session: Session, metrics: Sequence[str], mode: Mode) -> None:
        """Raises CountersUnavailable, and holds nothing then."""
        self.session, self.mode, self.asked = session, mode, tuple(metrics)
        self._known = supported(session.chip, self.asked, session.cupti)
        if not self._known:
            raise CountersUnavailable(
                f"{session.chip} knows none of the {len(self.asked)} metrics asked for", "unsupported"
            )
        with contextlib.ExitStack() as stack:
            self._host = stack.enter_context(Host(session.chip, session.cupti))
            if not self._host.add(self._known):
                raise CountersUnavailable(
                    f"{session.chip} cannot take these metrics together: {', '.join(self._known)}"
                )
            self._config = self._host.config_image()
            self.passes = self._host.passes(self._config)
            self._data = self._memory()
            self._cleanup = stack.pop_all()

    def _memory(self) -> Any:
        size = abi.CounterDataSize(
            pRangeProfilerObject=self.session.handle,
            pMetricNames=metric_names(self._known),
            numMetrics=len(self._known),
            maxNumOfRanges=self.mode.most,
            maxNumRangeTreeNodes=self.mode.most,
        )
        self.session.cupti.call("cuptiRangeProfilerGetCounterDataSize", size)
        return (ctypes.c_uint8 * size.counterDataSize)()

    def select(self) -> None:
        """Empty the memory and point the profiler at it; also drops what a failed call left behind."""
        data, handle = self._data, self.session.handle
        self.session.cupti.call(
            "cuptiRangeProfilerCounterDataImageInitialize",
            abi.CounterDataInitialize(pRangeProfilerObject=handle, counterDataSize=len(data), pCounterData=data),
        )
        self.session.cupti.call(
            "cuptiRangeProfilerSetConfig",
            abi.SetConfig(
                pRangeProfilerObject=handle,
                configSize=len(self._config),
                pConfig=self._config,
                counterDataImageSize=len(data),
                pCounterDataImage=data,
                range=self.mode.ranges,
                replayMode=self.mode.replay,
                maxRangesPerPass=self.mode.most,
                numNestingLevels=1,
                minNestingLevel=1,
                passIndex=0,
                targetNestingLevel=self.mode.level,
            ),
        )

    def decode(self) -> list[dict[str, float | None]]:
        """The asked metrics of every range, in order; None where the chip lacks one or gave no number."""
        decoded = abi.DecodeData(pRangeProfilerObject=self.session.handle)
        self.session.cupti.call("cuptiRangeProfilerDecodeData", decoded)
        data = self._data
        seen = abi.CounterDataInfo(pCounterDataImage=data, counterDataImageSize=len(data))
        self.session.cupti.call("cuptiRangeProfilerGetCounterDataInfo", seen)
        if decoded.numOfRangeDropped:
            raise CountersUnavailable(
                f"at most {self.mode.most} ranges expected, CUPTI kept {seen.numTotalRanges} and dropped {decoded.numOfRangeDropped}"
            )
        found = [self._host.evaluate(data, self._known, index) for index in range(seen.numTotalRanges)]
        # A ratio of nothing to nothing is no number; a count always is. As null it would say that the chip has no such counter.
        lost = sorted({name for row in found for name in self._known if name.endswith(".sum") and row[name] is None})
        if lost:
            raise CountersUnavailable(f"CUPTI gave no number for {len(lost)} counts, such as {', '.join(lost[:3])}")
        return [{name: values.get(name) for name in self.asked} for values in found]

    def close(self) -> None:
        """Free the schedule; a second close does nothing."""
        self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
