"""The in-process collectors against a made-up CUPTI that records its calls; no GPU is measured."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gpusolver.engine.worker.cupti_library import CountersUnavailable, Cupti
from gpusolver.engine.worker.cupti_range import each_kernel, whole_call
from gpusolver.engine.worker.cupti_session import KERNEL, USER, Mode, Session, Setup

from .fake_cupti import FakeCupti

METRICS = ("dram__bytes_read.sum", "known__to_ncu_only.sum", "l1tex__ratio.pct")


def session(fake: FakeCupti) -> Session:
    return Session(cupti=Cupti(fake, "fake"))


def setup(fake: FakeCupti, mode: Mode = USER) -> Setup:
    return Setup(session(fake), METRICS, mode)


def logs(fake: FakeCupti, word: str) -> Callable[[], None]:
    return lambda: fake.log.append(word)


def collect(fake: FakeCupti, ready: Setup | None = None) -> dict[str, Any]:
    found = whole_call(ready or setup(fake), logs(fake, "call"), logs(fake, "flush"), logs(fake, "synchronise"))
    assert found.pop("wall_s") >= 0
    return found


def kernels(fake: FakeCupti, ready: Setup | None = None) -> dict[str, Any]:
    return each_kernel(ready or setup(fake, KERNEL), logs(fake, "call"), logs(fake, "synchronise"))


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


def test_kernel_replay_runs_the_call_once_and_lists_every_kernel() -> None:
    fake = FakeCupti()
    fake.ranges = 3
    found = kernels(fake)
    assert (found["collector"], found["passes"], found["cache"]) == ("cupti_kernel_replay", 2, "warm")
    assert (
        found["kernels"]
        == [{"dram__bytes_read.sum": 4096.0, "known__to_ncu_only.sum": None, "l1tex__ratio.pct": None}] * 3
    )
    at = fake.log.index("Start")
    assert fake.log[at - 2 : at + 4] == [
        "CounterDataImageInitialize",
        "SetConfig",
        "Start",
        "call",
        "synchronise",
        "Stop",
    ]
    assert fake.log.count("call") == 1


def test_a_call_without_kernels_is_no_result() -> None:
    fake = FakeCupti()
    fake.ranges = 0
    with pytest.raises(CountersUnavailable, match="CUPTI kept 0 kernels"):
        kernels(fake)


def test_both_modes_and_several_sets_share_one_session() -> None:
    fake = FakeCupti()
    opened = session(fake)
    whole, single, fewer = (
        Setup(opened, METRICS, USER),
        Setup(opened, METRICS, KERNEL),
        Setup(opened, METRICS[:1], USER),
    )
    for _ in range(2):
        assert len(collect(fake, whole)["metrics"]) == 3
        assert len(kernels(fake, single)["kernels"]) == 1
        assert collect(fake, fewer)["metrics"] == {"dram__bytes_read.sum": 4096.0}
    assert fake.log.count("Enable") == 1


def test_close_gives_everything_back_once() -> None:
    fake = FakeCupti()
    ready = setup(fake)
    fake.log.clear()
    for _ in range(2):
        ready.close()
        ready.session.close()
    assert fake.log == ["ProfilerHostDeinitialize", "Disable", "ProfilerDeInitialize"]


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
        session(fake)
    assert caught.value.reason == reason
    assert fake.log[-2:] == ["Enable", "ProfilerDeInitialize"]


def test_a_set_that_cannot_be_made_ready_leaves_no_host_object() -> None:
    fake = FakeCupti(cuptiRangeProfilerGetCounterDataSize=999)
    with pytest.raises(CountersUnavailable, match="GetCounterDataSize answered 999"):
        setup(fake)
    assert fake.log.count("ProfilerHostInitialize") == fake.log.count("ProfilerHostDeinitialize")


def test_a_chip_that_knows_no_metric_is_unsupported() -> None:
    with pytest.raises(CountersUnavailable, match="GH100 knows none of the 1 metrics") as caught:
        Setup(session(FakeCupti()), ["ncu_only"], USER)
    assert caught.value.reason == "unsupported"


def test_passes_are_bounded() -> None:
    fake = FakeCupti()
    ready = setup(fake)
    fake.passes = 1000
    with pytest.raises(CountersUnavailable, match="3 passes run, 2 expected") as caught:
        collect(fake, ready)
    assert (caught.value.reason, fake.log.count("call")) == ("failed", 3)


@pytest.mark.parametrize(("ranges", "dropped", "words"), [(0, 0, "kept 0"), (2, 0, "kept 2"), (1, 1, "dropped 1")])
def test_a_lost_range_is_no_result(ranges: int, dropped: int, words: str) -> None:
    fake = FakeCupti()
    fake.ranges, fake.dropped = ranges, dropped
    with pytest.raises(CountersUnavailable, match=words):
        collect(fake)


@pytest.mark.parametrize("mode", [USER, KERNEL])
def test_the_calls_own_error_passes_through_and_the_next_collection_works(mode: Mode) -> None:
    fake = FakeCupti()
    ready = setup(fake, mode)
    with pytest.raises(ZeroDivisionError):
        if mode is USER:
            whole_call(ready, lambda: 1 // 0, lambda: None, lambda: None)
        else:
            each_kernel(ready, lambda: 1 // 0, lambda: None)
    assert fake.log[-1] == "Stop"
    assert (collect(fake, ready) if mode is USER else kernels(fake, ready))["passes"] == 2


def test_a_library_without_the_function_is_a_library_fault() -> None:
    with pytest.raises(
        CountersUnavailable, match=r"old has no cuptiProfilerInitialize: CUPTI 13\.0 expected"
    ) as caught:
        Session(cupti=Cupti(object(), "old"))
    assert caught.value.reason == "library"


def test_the_error_survives_a_pipe_unchanged() -> None:
    error = CountersUnavailable("counters refused", "permission")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.reason) == (str(error), "permission")
