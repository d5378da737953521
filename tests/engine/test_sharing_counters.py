"""Counters and extras under `--share-measurements`: they come with the samples of another arm, but for what that arm did not ask for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gpusolver.engine.executor import Observation, Question
from gpusolver.engine.measuring import no_counters
from gpusolver.engine.sharing import Read
from gpusolver.events.model import Profiled
from gpusolver.replay.verify import verify

from ..replay.tamper import Line, add_artifact, artifact, rewrite
from .support import FakeExecutor, assert_verifies, cell_events, only, play, request, stored
from .test_recorded import asking_for_more

ARMS = ("off", "on", "off+tabu", "on+tabu", "random")


def taken(events: list[Line]) -> dict[str, Any]:
    """The first profile whose samples the arm on took."""
    profiles = [e.body for e in events if e.kind == "Profiled" and "/on/" in e.stream]
    return next(body for body in profiles if body["origin_seq"])


def once_more(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"wall_s": 0.5}


def fewer(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"metrics": dict(list(content["metrics"].items())[1:])}


@pytest.mark.parametrize("change", [once_more, fewer])
def test_counters_that_are_not_the_other_arms_and_hold_no_more_are_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    path = tmp_path / "forged.db"
    play(path, FakeExecutor(), replace(request("off", "on", rounds=2), share=True))
    assert_verifies(path)

    def read_anew(events: list[Line]) -> None:
        body = taken(events)
        content = json.loads(artifact(path, body["counters"]))
        body["counters"] = add_artifact(path, json.dumps(change(content)).encode())

    rewrite(path, read_anew)
    told = [f for f in verify(path, True).findings if f.kind == "origin"]
    assert len(told) == 1 and told[0].found.startswith("counters ")


class Frugal(FakeExecutor):
    """Reads one metric less for the arm that pays."""

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        least = metrics[1:] if question.cell.arm == "off" else metrics
        return super().count(question, source, least)


def test_counters_that_lack_a_metric_are_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "frugal.db"
    play(path, Frugal(), replace(request("off", "on", rounds=4), share=True))
    by_seq = {r.seq: r.event for r in stored(path)}
    shared = [e for e in only(cell_events(path, "on"), Profiled) if e.origin_seq is not None]
    assert shared
    for event in shared:
        paid = by_seq[event.origin_seq or 0]
        assert isinstance(paid, Profiled) and event.samples == paid.samples and event.counters != paid.counters
    assert_verifies(path)


def test_extras_come_with_the_samples_and_are_not_measured_once_more(tmp_path: Path) -> None:
    """A table that asks for warm times too. They are samples: named by all who took them, and measured by one."""
    path = tmp_path / "more.db"
    play(path, FakeExecutor(), replace(request(*ARMS, rounds=4), share=True, rules=asking_for_more(tmp_path).rules))
    own = [e for arm in ARMS for e in only(cell_events(path, arm), Profiled)]
    shared = [e for e in own if e.origin_seq is not None]
    paid = {r.seq: r.event for r in stored(path)}
    assert shared and all(e.extras and e.extras == getattr(paid[e.origin_seq or 0], "extras", None) for e in shared)
    assert len({dict(e.extras or {})["warm"] for e in own}) == len(own) - len(shared)
    assert_verifies(path)

    def another(events: list[Line]) -> None:
        body = taken(events)
        content = json.loads(artifact(path, body["extras"]["warm"]))
        content["blocks"] = [[x + 1 for x in row] for row in content["blocks"]]
        body["extras"]["warm"] = add_artifact(path, json.dumps(content).encode())

    rewrite(path, another)
    assert "extras " in {f.found[:7] for f in verify(path, True).findings if f.kind == "origin"}


def counters(**metrics: float | None) -> bytes:
    return json.dumps(
        {"collector": "cupti", "passes": 1, "chip": "GH100", "cache": "cold", "metrics": metrics}
    ).encode()


def test_what_the_counters_of_another_arm_answer() -> None:
    """By hand: `b` could not be collected on this chip and is there all the same; `c` was not asked."""
    paid = Read(counters=counters(a=1, b=None), extras={})
    assert paid.answers(("a", "b")) and paid.answers(("a",)) and not paid.answers(("a", "c"))
    assert paid.instead(counters(a=2, b=3)) == paid.counters == paid.instead(counters(a=2))
    assert paid.instead(counters(a=2, c=3)) == counters(a=2, c=3)
    refused = Read(counters=no_counters(Observation(status="counters_permission")), extras={})
    assert refused.answers(("a", "c")) and not Read(counters=None, extras={}).answers(())
