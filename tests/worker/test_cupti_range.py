"""The range collector against a made-up CUPTI that records its calls; the values are the fake's, no GPU is measured."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from gpusolver.engine.worker.cupti_library import CountersUnavailable, Cupti
from gpusolver.engine.worker.cupti_range import RangeCounters

METRICS = ("dram__bytes_read.sum", "known__to_ncu_only.sum", "l1tex__ratio.pct")


class FakeCupti:
    """Two passes on GH100; knows all names but those with `ncu_only`; `codes` makes functions fail."""

    def __init__(self, **codes: int) -> None:
        self.codes, self.log = codes, list[str]()
        self.passes_left, self.passes, self.ranges = 2, 2, 1
        self.values = {b"dram__bytes_read.sum": 4096.0, b"l1tex__ratio.pct": math.nan}

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("cupti"):
            raise AttributeError(function)

        def entry(reference: Any) -> int:
            name = function.removeprefix("cupti")
            self.log.append(name.removeprefix("RangeProfiler"))
            if function in self.codes:
                return self.codes[function]
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
        self.passes_left = self.passes
        return 0 if asked == (2, 3, 1, 1, 1) else 1

    def RangeProfilerStop(self, params: Any) -> None:
        self.passes_left -= 1
        params.isAllPassSubmitted = self.passes_left == 0

    def RangeProfilerGetCounterDataInfo(self, params: Any) -> None:
        params.numTotalRanges = self.ranges

    def ProfilerHostEvaluateToGpuValues(self, params: Any) -> None:
        for i in range(params.numMetrics):
            params.pMetricValues[i] = self.values[params.ppMetricNames[i]]


def counters(fake: FakeCupti) -> RangeCounters:
    return RangeCounters(METRICS, lambda: fake.log.append("synchronise"), cupti=Cupti(fake, "fake"))


def collect(fake: FakeCupti) -> dict[str, Any]:
    return counters(fake).collect(lambda: fake.log.append("call"), lambda: fake.log.append("flush"))


def test_missing_and_nan_are_none_never_zero() -> None:
    assert collect(FakeCupti()) == {
        "collector": "cupti_user_range",
        "passes": 2,
        "chip": "GH100",
        "cache": "cold",
        "metrics": {"dram__bytes_read.sum": 4096.0, "known__to_ncu_only.sum": None, "l1tex__ratio.pct": None},
    }


def test_order_of_calls_of_each_pass() -> None:
    fake = FakeCupti()
    collect(fake)
    one_pass = ["flush", "Start", "PushRange", "call", "PopRange", "Stop", "synchronise"]
    at = fake.log.index("flush")
    assert fake.log[at - 2 : at] == ["CounterDataImageInitialize", "SetConfig"]
    assert fake.log[at:] == [
        *one_pass,
        *one_pass,
        "DecodeData",
        "GetCounterDataInfo",
        "ProfilerHostEvaluateToGpuValues",
    ]


def test_close_gives_everything_back_once() -> None:
    fake = FakeCupti()
    open_counters = counters(fake)
    fake.log.clear()
    open_counters.close()
    open_counters.close()
    assert fake.log == ["Disable", "ProfilerHostDeinitialize", "ProfilerDeInitialize"]


@pytest.mark.parametrize(
    ("code", "reason", "advice"),
    [
        (35, "permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        (40, "permission", "CAP_SYS_ADMIN"),
        (26, "busy", "another profiler"),
        (39, "busy", "end ncu"),
        (41, "unsupported", "confidential computing"),
        (43, "unsupported", "MIG"),
        (45, "unsupported", "WSL"),
        (999, "failed", "fresh worker"),
    ],
)
def test_refusal_of_enable_says_what_to_do_and_leaves_nothing_open(code: int, reason: str, advice: str) -> None:
    fake = FakeCupti(cuptiRangeProfilerEnable=code)
    with pytest.raises(CountersUnavailable, match=f"cuptiRangeProfilerEnable answered {code} .*{advice}") as caught:
        counters(fake)
    assert caught.value.reason == reason
    assert fake.log[-2:] == ["ProfilerHostDeinitialize", "ProfilerDeInitialize"]


def test_a_chip_that_knows_no_metric_is_unsupported() -> None:
    fake = FakeCupti()
    with pytest.raises(CountersUnavailable, match="GH100 knows none of the 1 metrics") as caught:
        RangeCounters(["ncu_only"], lambda: None, cupti=Cupti(fake, "fake"))
    assert caught.value.reason == "unsupported"


def test_passes_are_bounded() -> None:
    fake = FakeCupti()
    ready = counters(fake)
    fake.passes = 1000
    with pytest.raises(CountersUnavailable, match="3 passes run, 2 expected") as caught:
        ready.collect(lambda: fake.log.append("call"), lambda: None)
    assert (caught.value.reason, fake.log.count("call")) == ("failed", 3)


def test_a_lost_range_is_no_result() -> None:
    fake = FakeCupti()
    fake.ranges = 0
    with pytest.raises(CountersUnavailable, match="one range expected, CUPTI kept 0 and dropped 0"):
        collect(fake)


def test_the_calls_own_error_passes_through_and_the_next_collect_works() -> None:
    fake = FakeCupti()
    ready = counters(fake)
    with pytest.raises(ZeroDivisionError):
        ready.collect(lambda: 1 // 0, lambda: None)
    assert fake.log[-2:] == ["PopRange", "Stop"]
    assert ready.collect(lambda: None, lambda: None)["passes"] == 2


def test_a_library_without_the_function_is_a_library_fault() -> None:
    with pytest.raises(
        CountersUnavailable, match=r"old has no cuptiProfilerInitialize: CUPTI 13\.0 expected"
    ) as caught:
        RangeCounters(METRICS, lambda: None, cupti=Cupti(object(), "old"))
    assert caught.value.reason == "library"


def test_the_error_survives_a_pipe_unchanged() -> None:
    error = CountersUnavailable("counters refused", "permission")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.reason) == (str(error), "permission")
