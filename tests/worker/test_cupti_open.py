"""The worker's profiler session: one for each metric set, opened when the set changes, and nothing of a set is left behind."""

from __future__ import annotations

import pytest

from gpusolver.engine.worker.cupti_library import CountersUnavailable, Cupti
from gpusolver.engine.worker.cupti_open import OpenCounters
from gpusolver.engine.worker.cupti_range import whole_call
from gpusolver.engine.worker.cupti_session import KERNEL, USER, Session, Setup

from .fake_cupti import FakeCupti

METRICS = tuple(f"metric_{number}.sum" for number in range(12))


def opened(fake: FakeCupti) -> OpenCounters:
    return OpenCounters(lambda: Session(cupti=Cupti(fake, "fake")))


def collect(ready: Setup) -> dict[str, float | None]:
    found: dict[str, float | None] = whole_call(ready, lambda: None, lambda: None, lambda: None)["metrics"]
    return found


def test_each_metric_set_has_a_session_of_its_own_and_none_is_left_open() -> None:
    """A second set under one session reads as missing in part on a real device (GPU test)."""
    fake = FakeCupti()
    counters = opened(fake)
    for left in range(len(METRICS), 0, -1):
        for mode in (USER, KERNEL):
            asked = METRICS[:left]
            found = counters.use(asked, mode, lambda ready: ready.asked)
            assert found == asked
            assert fake.log.count("Enable") - fake.log.count("Disable") == 1
            assert fake.log.count("ProfilerHostInitialize") - fake.log.count("ProfilerHostDeinitialize") <= 1
    assert fake.log.count("Enable") == 2 * len(METRICS)
    counters.close()
    assert fake.log.count("ProfilerHostInitialize") == fake.log.count("ProfilerHostDeinitialize")
    assert fake.log.count("Enable") == fake.log.count("Disable")


def test_the_same_set_is_made_ready_once() -> None:
    fake = FakeCupti()
    counters = opened(fake)
    for _ in range(5):
        assert counters.use(METRICS[:2], USER, collect) == {"metric_0.sum": 1.0, "metric_1.sum": 1.0}
    assert fake.log.count("GetCounterDataSize") == 1


def test_a_session_gone_bad_is_opened_again_once_and_the_answer_is_the_new_ones() -> None:
    fake = FakeCupti()
    counters = opened(fake)
    counters.use(METRICS, USER, collect)
    fake.fail_once = "cuptiRangeProfilerSetConfig"
    assert counters.use(METRICS, USER, collect)["metric_3.sum"] == 1.0
    assert (fake.log.count("Enable"), fake.log.count("Disable")) == (2, 1)


@pytest.mark.parametrize(("code", "enables"), [(999, 2), (35, 1)])
def test_one_that_stays_bad_is_refused_and_given_back(code: int, enables: int) -> None:
    """A lasting refusal of permission is not asked about twice."""
    fake = FakeCupti()
    counters = opened(fake)
    counters.use(METRICS, USER, collect)
    fake.codes["cuptiRangeProfilerSetConfig"] = code
    with pytest.raises(CountersUnavailable, match=f"SetConfig answered {code}"):
        counters.use(METRICS, USER, collect)
    assert fake.log.count("Enable") == enables
    counters.close()
    assert fake.log.count("Enable") == fake.log.count("Disable")


def test_an_error_of_the_call_keeps_the_session() -> None:
    fake = FakeCupti()
    counters = opened(fake)
    with pytest.raises(ZeroDivisionError):
        counters.use(METRICS, USER, lambda ready: whole_call(ready, lambda: 1 // 0, lambda: None, lambda: None))
    counters.use(METRICS, USER, collect)
    assert fake.log.count("Enable") == 1


def test_after_a_close_the_next_use_opens_again() -> None:
    fake = FakeCupti()
    counters = opened(fake)
    for _ in range(2):
        counters.use(METRICS, USER, collect)
        counters.close()
        counters.close()
    assert fake.log.count("Enable") == fake.log.count("Disable") == 2
