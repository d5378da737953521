"""Kernels attributed to calls from a made-up record of activities; torch is imported, no GPU is measured."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.worker.refusals import ExtraFailed
from gpusolver.engine.worker.timeline import Activity, attribute

FLUSH = ["Memset (Device)", "void at::native::reduce_kernel<512, 1>"]
HOLD = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def record(*calls: list[str], flush: list[str] = FLUSH) -> list[Activity]:
    """Each call after its flush and hold, every piece 10 ns long and 5 ns after the one before."""
    names = [name for call in calls for name in (*flush, HOLD, *call)]
    return [Activity(15 * at, 15 * at + 10, name) for at, name in enumerate(names)]


def test_each_call_has_the_work_between_its_hold_and_the_next_flush() -> None:
    found = attribute(record(["exp", "add"], ["exp", "add"], ["exp", "add"]), 3)
    assert [[work.name for work in call] for call in found] == [["exp", "add"]] * 3
    # The first call's work is the 4th and 5th piece of all: starts at 3 * 15 and 4 * 15.
    assert [(work.start, work.end) for work in found[0]] == [(45, 55), (60, 70)]


def test_a_call_that_ends_like_the_flush_keeps_its_own_kernels() -> None:
    found = attribute(record(FLUSH, FLUSH), 2)
    assert [[work.name for work in call] for call in found] == [FLUSH, FLUSH]


def test_the_order_of_the_record_does_not_matter() -> None:
    activities = record(["a", "b"], ["a", "b"])
    assert attribute(activities[::-1], 2) == attribute(activities, 2)


def test_a_flush_of_one_kernel_is_found_too() -> None:
    found = attribute(record(["a"], ["a"], flush=FLUSH[1:]), 2)
    assert [[work.name for work in call] for call in found] == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("activities", "calls", "words"),
    [
        (record(["a"], ["a"]), 3, "3 calls were held, the profiler saw 2"),
        ([], 1, "the profiler saw 0 holds"),
        (record(["a"], ["a", "b"]), 2, r"the profiler saw \[1, 2\] kernels"),
        (record([], []), 2, r"the profiler saw \[0\] kernels"),
        # Work of the second call on another stream, before its hold.
        ([*record(["a"], ["a"]), Activity(81, 82, "early")], 2, "found other work"),
        ([Activity(0, 10, HOLD), Activity(20, 20, "empty")], 1, "expected the same work"),
    ],
    ids=["a hold is lost", "nothing", "a kernel is lost", "no kernels", "work before the hold", "no duration"],
)
def test_a_record_that_does_not_fit_is_refused(activities: list[Activity], calls: int, words: str) -> None:
    with pytest.raises(ExtraFailed, match=words):
        attribute(activities, calls)
