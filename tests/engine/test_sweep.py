"""A sweep of sources of which some end their process: who is left out, by answers that are made up."""

from __future__ import annotations

import msgspec
import pytest

from gpusolver.engine.executor import Observation
from gpusolver.engine.refereed import Bout
from gpusolver.engine.worker.protocol import Subject

SUBJECT = Subject(reference="", shape={}, seed=0)
A, B, C = "a", "b", "c"


class Made(Bout):
    """Sweeps of made-up sources: each of `deadly` gives its status to any sweep that it is in."""

    def __init__(self, **deadly: str) -> None:
        self.deadly, self.asked = deadly, list[tuple[tuple[str, ...], int]]()
        self.limits = list[float]()

    def _swept(
        self, subject: Subject, purpose: str, sources: tuple[str, ...], count: int, limit_s: float
    ) -> Observation:
        self.asked.append((sources, count))
        self.limits.append(limit_s)
        status = next((self.deadly[one] for one in sources if one in self.deadly), "ok")
        samples = [[ord(one)] * count for one in sources]
        return Observation(status=status, artifacts={"sweep": msgspec.json.encode({"samples": samples, "unit": "ns"})})


def swept(bout: Bout, *sources: str) -> tuple[str, object]:
    seen = bout.sweep(SUBJECT, "sweep", sources, 3, 1.0)
    return seen.status, msgspec.json.decode(seen.artifacts["sweep"])["samples"]


def test_where_all_are_well_they_are_swept_once() -> None:
    bout = Made()
    assert swept(bout, A, B) == ("ok", [[97] * 3, [98] * 3]) and bout.asked == [((A, B), 3)]


@pytest.mark.parametrize("status", ["context_lost", "worker_lost", "timeout"])
def test_who_loses_its_process_is_null_and_the_others_are_swept_together(status: str) -> None:
    """Each alone as often first: which of them it was, and at which of its calls, the process that is lost cannot say."""
    bout = Made(b=status)
    assert swept(bout, A, B, C) == ("ok", [[97] * 3, None, [99] * 3])
    assert bout.asked == [((A, B, C), 3), ((A,), 3), ((B,), 3), ((C,), 3), ((A, C), 3)]


def test_where_none_is_left_or_one_was_all_the_fault_stays() -> None:
    assert swept(Made(a="context_lost", b="timeout"), A, B)[0] == "context_lost"
    assert swept(Made(a="timeout"), A)[0] == "timeout"


def test_a_fault_of_the_machine_is_nobodys() -> None:
    bout = Made(a="request_failed")
    assert swept(bout, A, B)[0] == "request_failed" and bout.asked == [((A, B), 3)]


@pytest.mark.parametrize(("limit_s", "alone_s"), [(300.0, 100.0), (120.0, 60.0), (20.0, 20.0)])
def test_however_many_hang_a_sweep_ends(limit_s: float, alone_s: float) -> None:
    """Alone each has its share of the time, a minute at least, and never more than all had together."""
    bout = Made(b="timeout")
    bout.sweep(SUBJECT, "sweep", (A, B, C), 3, limit_s)
    assert bout.limits == [limit_s, alone_s, alone_s, alone_s, limit_s]
