"""`--share-measurements`: arms that share decide like arms that do not, pay for nothing twice, and cannot choose what they take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import LEAST_BLOCKS, register
from gpusolver.events.errors import BadInput
from gpusolver.events.model import (
    HeadToHead,
    KernelGated,
    NoiseFloorMeasured,
    Profiled,
    RoundJudged,
    RunRegistered,
    TilesSwept,
)
from gpusolver.profilers.intervals import rank
from gpusolver.replay.verify import verify

from ..replay.tamper import Line, add_artifact, artifact, rewrite
from .support import (
    FakeExecutor,
    Kernel,
    assert_verifies,
    cell_events,
    matmul_story,
    only,
    play,
    request,
    stored,
    verdicts,
)

ARMS = ("off", "on", "off+tabu", "on+tabu", "random")
SHAREABLE = (KernelGated, Profiled, NoiseFloorMeasured, TilesSwept)


def slower(factor: float, tf32: float = 1.0) -> Callable[[str], Kernel]:
    """The story with other times: ten problems that differ in what their kernels take, and in what TF32 is worth."""

    def story(text: str) -> Kernel:
        kernel = matmul_story(text)
        ns = kernel.ns * factor * (tf32 if 'PRECISION = "tf32"' in text else 1.0)
        return replace(kernel, ns=int(ns))

    return story


STORIES = {f"{factor}x {tf32}": slower(factor, tf32) for factor in (0.5, 0.9, 1.0, 1.7, 4.0) for tf32 in (1.0, 1.6)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "shared.db"
    play(path, FakeExecutor(), replace(request(*ARMS, rounds=7), share=True))
    return path


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_shared_and_separate_runs_decide_alike(tmp_path: Path, story: Callable[[str], Kernel]) -> None:
    """The control on ten made-up problems: every round of every arm, and fewer measurements."""
    apart, together = FakeExecutor(story), FakeExecutor(story)
    play(tmp_path / "apart.db", apart, request(*ARMS, rounds=7))
    play(tmp_path / "together.db", together, replace(request(*ARMS, rounds=7), share=True))
    for arm in ARMS:
        ours, theirs = cell_events(tmp_path / "together.db", arm), cell_events(tmp_path / "apart.db", arm)
        assert verdicts(ours) == verdicts(theirs)
        assert [j.next_incumbent for j in only(ours, RoundJudged)] == [
            j.next_incumbent for j in only(theirs, RoundJudged)
        ]
    assert_verifies(tmp_path / "together.db")
    assert together.calls["gate"] < 0.6 * apart.calls["gate"]
    assert together.calls["sweep"] < apart.calls["sweep"]
    assert together.calls["compare"] < apart.calls["compare"]
    assert together.calls["count"] < 0.6 * apart.calls["count"]


def test_the_first_arm_pays_and_each_event_says_where_it_is_from(shared: Path) -> None:
    assert all(e.origin_seq is None for e in cell_events(shared, "off") if isinstance(e, SHAREABLE))
    by_seq = {r.seq: r.event for r in stored(shared)}
    taken = [e for arm in ARMS[1:] for e in cell_events(shared, arm) if isinstance(e, SHAREABLE) and e.origin_seq]
    assert {type(e) for e in taken} == set(SHAREABLE)
    for event in taken:
        paid = by_seq[event.origin_seq or 0]
        assert isinstance(paid, SHAREABLE) and paid.origin_seq is None and paid.cell.arm != event.cell.arm
        if isinstance(event, Profiled) and isinstance(paid, Profiled):
            assert (event.source, event.against, event.samples) == (paid.source, paid.against, paid.samples)
            assert event.counters is not None and event.counters == paid.counters


def found(path: Path) -> set[str]:
    return {finding.kind for finding in verify(path, True).findings}


def of(events: list[Line], kind: str, arm: str) -> list[Line]:
    return [line for line in events if line.kind == kind and f"/{arm}/" in line.stream]


def next_measurement(events: list[Line]) -> None:
    """Another gate of the same kernel: the arm would have chosen."""
    gates = of(events, "KernelGated", "on")
    gates[1].body["origin_seq"] = gates[2].body["origin_seq"]


def denied(events: list[Line]) -> None:
    """Taken, and said to be its own."""
    of(events, "Profiled", "on")[0].body["origin_seq"] = None
    of(events, "NoiseFloorMeasured", "on")[0].body["origin_seq"] = None


def nowhere(events: list[Line]) -> None:
    of(events, "TilesSwept", "on+tabu")[0].body["origin_seq"] = 1


def not_registered(events: list[Line]) -> None:
    del events[0].body["shares"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [(next_measurement, "origin"), (denied, "samples"), (nowhere, "origin"), (not_registered, "origin")],
)
def test_what_is_not_so_is_found(shared: Path, tmp_path: Path, change: Callable[[list[Line]], None], kind: str) -> None:
    path = tmp_path / "forged.db"
    path.write_bytes(shared.read_bytes())
    rewrite(path, change)
    assert kind in found(path)


def anew(kind: str, place: int) -> Callable[[list[Line], Path], None]:
    """The n-th measurement of that kind that an arm took is one of its own instead: every time a nanosecond longer."""

    def change(events: list[Line], path: Path) -> None:
        body = [e for e in of(events, kind, "on") + of(events, kind, "on+tabu") if e.body["origin_seq"]][place].body
        content = json.loads(artifact(path, body["samples"]))
        longer = {
            name: [row and [x + 1 for x in row] for row in content[name]] for name in ("blocks", "samples") if name in content
        }  # fmt: skip
        body.update(origin_seq=None, samples=add_artifact(path, json.dumps(content | longer).encode()))

    return change


def gated_anew(events: list[Line], path: Path) -> None:
    of(events, "KernelGated", "on")[1].body["origin_seq"] = None


@pytest.mark.parametrize(
    "change",
    [gated_anew, anew("Profiled", 0), anew("Profiled", 2), anew("NoiseFloorMeasured", 2), anew("TilesSwept", 0)],
)
def test_what_another_arm_measured_is_not_measured_anew(
    shared: Path, tmp_path: Path, change: Callable[[list[Line], Path], None]
) -> None:
    """An arm that sees a measurement and tries again would choose the better of two."""
    path = tmp_path / "forged.db"
    path.write_bytes(shared.read_bytes())
    rewrite(path, lambda events: change(events, path))
    assert "measured anew" in {f.found for f in verify(path, True).findings if f.kind == "origin"}


def test_a_measurement_that_failed_takes_no_turn(tmp_path: Path) -> None:
    """A worker lost in the second arm's first own comparison: the round is tried again, and the ledger verifies."""
    for stage, number in (("compare", 5), ("gate", 4), ("sweep", 2)):
        path = tmp_path / f"{stage}.db"
        play(path, FakeExecutor(faults={(stage, number): "worker_lost"}), replace(request(*ARMS, rounds=7), share=True))
        assert_verifies(path)


def test_the_registration_says_so_and_a_recording_shares_nothing(shared: Path) -> None:
    assert only((r.event for r in stored(shared)), RunRegistered)[0].shares is True
    executor = RecordedExecutor(shared)
    with pytest.raises(BadInput, match="a recording, which pays for nothing"):
        register("run1", replace(request(*ARMS), share=True), executor)
    executor.close()


def test_comparisons_of_the_same_kernels_are_measured_once(tmp_path: Path) -> None:
    """Under the strict contract the winner is its own strict twin: of `endpoint`, `total` and their kernel parts two are the same pair."""
    executor = FakeExecutor()
    path = tmp_path / "shared.db"
    play(path, executor, replace(request("off", "on", contract="fp32-strict"), share=True))
    by_seq = {r.seq: r.event for r in stored(path)}
    taken = [e for e in by_seq.values() if isinstance(e, HeadToHead) and e.origin_seq is not None]
    assert {"kernel_part"} <= {e.comparison for e in taken}
    for event in taken:
        paid = by_seq[event.origin_seq or 0]
        assert isinstance(paid, HeadToHead) and paid.origin_seq is None
        assert (paid.left, paid.right, paid.samples) == (event.left, event.right, event.samples)
    assert_verifies(path)

    def another(events: list[Line]) -> None:
        lines = [line for line in events if line.kind == "HeadToHead"]
        first = next(line for line in lines if line.body["origin_seq"] is not None)
        first.body["origin_seq"] -= 1

    rewrite(path, another)
    assert "origin" in found(path)


def test_fewer_blocks_are_registered_with_the_looks_before_them(tmp_path: Path) -> None:
    path = tmp_path / "few.db"
    play(path, FakeExecutor(), replace(request("on"), blocks=50))
    registered = only((r.event for r in stored(path)), RunRegistered)[0].statistics
    assert (registered.blocks, registered.looks) == (50, (20, 40, 50))
    assert_verifies(path)
    with pytest.raises(BadInput, match="--blocks: expected 12 to 320, found 11"):
        register("run1", replace(request("on"), blocks=11), FakeExecutor())


def test_the_fewest_blocks_still_bound_the_median_and_leave_one_out_on_either_side(tmp_path: Path) -> None:
    """Twelve blocks, one look at the whole tail. By hand: k = 2 misses with 2 * (1 + 12) / 4096 = 0.63 %, and k = 3 with
    2 * (1 + 12 + 66) / 4096 = 3.9 %; of eleven k = 2 would already miss with 2 * (1 + 11) / 2048 = 1.17 %.
    """
    path = tmp_path / "few.db"
    play(path, FakeExecutor(), replace(request("on", rounds=6), blocks=LEAST_BLOCKS))
    registered = next(r.event for r in stored(path) if isinstance(r.event, RunRegistered)).statistics
    assert (LEAST_BLOCKS, registered.looks) == (12, (12,))
    ranks = {e.interval.rank for e in only(cell_events(path, "on"), RoundJudged) if e.interval is not None}
    assert ranks == {2} and rank(LEAST_BLOCKS - 1, registered.tail_num, registered.tail_den) == 1
    assert_verifies(path)
