"""A made-up CUPTI that records its calls; its values are its own, no GPU is measured."""

from __future__ import annotations

import math
from typing import Any


class FakeCupti:
    """Two passes on GH100; knows all names but those with `ncu_only`; `codes` makes functions fail."""

    def __init__(self, **codes: int) -> None:
        self.codes, self.log = codes, list[str]()
        self.passes_left, self.passes, self.ranges, self.dropped = 2, 2, 1, 0
        self.kernel_replay, self.fail_once = False, ""
        self.values = {b"dram__bytes_read.sum": 4096.0, b"l1tex__ratio.pct": math.nan}

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("cupti"):
            raise AttributeError(function)

        def entry(reference: Any) -> int:
            name = function.removeprefix("cupti")
            self.log.append(name.removeprefix("RangeProfiler"))
            if function in self.codes:
                return self.codes[function]
            if function == self.fail_once:
                self.fail_once = ""
                return 999
            return int(getattr(self, name, lambda params: 0)(reference._obj) or 0)

        return entry

    def cuptiGetResultString(self, code: int, text: Any) -> int:
        text._obj.value = b"CUPTI_ERROR_%d" % code
        return 0

    def DeviceGetChipName(self, params: Any) -> None:
        params.pChipName = b"GH100"

    def ProfilerHostConfigAddMetrics(self, params: Any) -> int:
        return int(any(b"ncu_only" in params.ppMetricNames[i] for i in range(params.numMetrics)))

    def ProfilerHostGetConfigImageSize(self, params: Any) -> None:
        params.configImageSize = 8

    def ProfilerHostGetNumOfPasses(self, params: Any) -> None:
        params.numOfPasses = self.passes

    def RangeProfilerEnable(self, params: Any) -> None:
        params.pRangeProfilerObject = 0x5150

    def RangeProfilerGetCounterDataSize(self, params: Any) -> None:
        params.counterDataSize = 64

    def RangeProfilerSetConfig(self, params: Any) -> int:
        asked = (
            params.range,
            params.replayMode,
            params.numNestingLevels,
            params.minNestingLevel,
            params.targetNestingLevel,
        )
        self.kernel_replay = params.replayMode == 2
        self.passes_left = self.passes
        return 0 if asked in ((2, 3, 1, 1, 1), (1, 2, 1, 1, 0)) else 1

    def RangeProfilerStop(self, params: Any) -> None:
        self.passes_left -= self.passes if self.kernel_replay else 1
        params.isAllPassSubmitted = self.passes_left == 0

    def RangeProfilerDecodeData(self, params: Any) -> None:
        params.numOfRangeDropped = self.dropped

    def RangeProfilerGetCounterDataInfo(self, params: Any) -> None:
        params.numTotalRanges = self.ranges

    def ProfilerHostEvaluateToGpuValues(self, params: Any) -> None:
        for i in range(params.numMetrics):
            params.pMetricValues[i] = self.values.get(params.ppMetricNames[i], 1.0)
