"""Verdicts by looks (FORMAT.md 6.1) on blocks counted by hand, and in the rounds of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpusolver.events.model import Gain, Statistics
from gpusolver.replay import matching, statistic
from gpusolver.replay.artifacts import Samples

from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite
from .world import CHIP

LOOKS = Statistics(blocks=12, tail_num=1, tail_den=20, margin=0.25, floor_multiple=0.0, looks=(4, 8, 12))
Block = tuple[int, int, int, int]
ONE: Block = (100, 100, 100, 100)
TWICE: Block = (200, 100, 100, 200)


def looked(*blocks: Block, floor_ns: float = 0.0, statistics: Statistics = LOOKS, **more: Any) -> statistic.Look:
    """Judge these blocks by looks."""
    samples = Samples("cuda_event", "cold", "ns", blocks)
    fields: dict[str, Any] = {"outcome": "passed", "inert": False, "margin": 0.25} | more
    return statistic.judge_by_looks(samples=samples, floor_ns=floor_ns, statistics=statistics, **fields)


def test_each_look_has_its_share_of_the_tail() -> None:
    """A third of 1/20: rank 0 of 4 blocks, 1 of 8, 2 of 12, where the whole tail has 0, 1 and 3."""
    assert [(s.blocks, s.tail_den) for s in statistic.looks(LOOKS)] == [(4, 60), (8, 60), (12, 60)]
    assert [statistic.rank(n, 1, 60) for n in (4, 8, 12)] == [0, 1, 2]
    assert [statistic.rank(n, 1, 20) for n in (4, 8, 12)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("blocks", "verdict", "reason", "rank"),
    [
        ((TWICE,) * 8, "FASTER", "interval beyond margin", 1),
        ((ONE,) * 8, "SAME", "interval within margin", 1),
        ((TWICE,) + (ONE,) * 11, "SAME", "interval within margin", 2),  # straddles at eight, where the largest counts
        ((TWICE,) * 6 + (ONE,) * 6, "AMBIGUOUS", "interval straddles margin", 2),
    ],
)
def test_the_first_look_that_decides(blocks: tuple[Block, ...], verdict: str, reason: str, rank: int) -> None:
    """And the last one, whatever it says."""
    due = looked(*blocks)
    assert due.forbidden == ()
    assert (due.judgement.verdict, due.judgement.reason) == (verdict, reason)
    assert due.judgement.interval is not None
    assert (due.judgement.interval.rank, due.judgement.interval.blocks) == (rank, len(blocks))


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ((TWICE,) * 12, "more samples after FASTER"),
        ((ONE,) * 12, "more samples after SAME"),
        (((TWICE,) * 4 + (ONE,) * 4), "an end at the look of 8 blocks"),
        ((ONE,) * 4, "an end at the look of 4 blocks, too few blocks"),
        ((TWICE,) * 6 + (ONE,) * 4, "10 blocks, between the looks"),
        ((ONE,) * 3, "3 blocks, between the looks"),
        ((), "0 blocks, between the looks"),
        ((TWICE,) * 6 + (ONE,) * 9, "15 blocks, between the looks"),
    ],
)
def test_an_end_elsewhere_is_forbidden(blocks: tuple[Block, ...], words: str) -> None:
    """Late, early or between."""
    assert any(said.startswith(words) for said in looked(*blocks).forbidden)


def test_below_the_physical_floor_ends_at_the_first_look() -> None:
    """And goes on is forbidden, though its interval would decide nothing."""
    due = looked(*(TWICE,) * 4, floor_ns=101.0)
    assert due.forbidden == () and due.judgement.reason == "below physical floor"
    assert looked(*(TWICE,) * 8, floor_ns=101.0).forbidden != ()


def test_a_gate_that_failed_asks_for_no_look() -> None:
    """Nor an inert candidate."""
    assert looked(ONE, outcome="timeout") == statistic.Look(statistic.Judgement("AMBIGUOUS", "gate: timeout"))
    assert looked(ONE, inert=True).forbidden == ()


def registered(**fields: object) -> Any:
    return lambda events: first(events, "RunRegistered").body["statistics"].update(fields)


def test_rounds_by_looks(ledger: Path) -> None:
    """Looks at 4 and 8 blocks: no rank at four (2 * 40 * 1 > 16), and one at eight as with the whole tail (80, 40 <= 256)."""
    rewrite(ledger, registered(looks=[4, 8]))
    assert found(ledger) == set()


def test_rounds_that_went_on_after_a_decisive_look(ledger: Path) -> None:
    """At seven blocks there is a rank (80 <= 128), and no noise in the way of it."""
    rewrite(ledger, registered(looks=[7, 8]))
    kinds = {kind for _, kind in found(ledger)}
    assert kinds == {"looks"}


def test_a_round_between_looks(ledger: Path) -> None:
    """Seven of eight blocks, the signals left as they were where they are still true."""

    def change(events: list[Line]) -> None:
        registered(looks=[4, 8])(events)
        body = next(e.body for e in events if e.kind == "Profiled" and e.body["round"] > 0)
        content = json.loads(artifact(ledger, body["samples"]))
        content["blocks"].pop()
        body["samples"] = add_artifact(ledger, compact(content).encode())

    rewrite(ledger, change)
    assert "looks" in {kind for _, kind in found(ledger)}


@pytest.mark.parametrize("looks", [[], [0, 8], [8, 4, 8], [4, 4, 8], [4, 7], [-1, 8], [4, 9]])
def test_looks_that_no_run_may_register(ledger: Path, looks: list[int]) -> None:
    """Ascending from 1, ending with all blocks."""
    rewrite(ledger, registered(looks=looks))
    assert "registration" in {kind for _, kind in found(ledger)}


# --- extras of a profile, and the gain that they feed ---


def extras(**roles: object) -> Any:
    def change(events: list[Line], path: Path) -> None:
        made = {role: add_artifact(path, compact(content).encode()) for role, content in roles.items()}
        first(events, "Profiled").body.update(extras=made)
        for event in events:
            event.body["rev"] = event.body.pop("rev")  # stays the last key

    return change


TIMELINE = {"collector": "torch_profiler", "calls": [[[0, 9, "k"]]], "operators": None}


@pytest.mark.parametrize(
    ("roles", "kind"),
    [
        ({"timeline": TIMELINE}, None),  # no limits in the calibration: no signal is due of it
        ({}, "extras"),
        ({"zeal": TIMELINE}, "extras"),
        ({"timeline": TIMELINE | {"calls": []}}, "derivation failed"),
        ({"energy": TIMELINE}, "derivation failed"),
    ],
)
def test_extras_of_a_profile(ledger: Path, roles: dict[str, object], kind: str | None) -> None:
    """Known roles in their shapes, or none at all."""
    rewrite(ledger, lambda events: extras(**roles)(events, ledger))
    assert {k for _, k in found(ledger)} == (set() if kind is None else {kind})


def test_extras_that_are_not_there(ledger: Path) -> None:
    """Named by a digest that no artifact has."""

    def change(events: list[Line]) -> None:
        extras(timeline=TIMELINE)(events, ledger)
        first(events, "Profiled").body["extras"]["timeline"] = "ab" * 32

    rewrite(ledger, change)
    assert (first(lines(ledger), "Profiled").seq, "artifact missing") in found(ledger)


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (Gain(form="amdahl", cap=9.0, signal="four", share="half"), 1.6),  # 1 / (0.5 + 0.5 / 4)
        (Gain(form="amdahl", cap=1.5, signal="four", share="half"), 1.5),
        (Gain(form="amdahl", cap=9.0, signal="four"), 4.0),  # all of it
        (Gain(form="amdahl", cap=9.0, signal="four", share="absent"), 4.0),
        (Gain(form="amdahl", cap=9.0, signal="four", share="four"), 4.0),  # a share of at most 1
        (Gain(form="amdahl", cap=9.0, signal="half", share="half"), 1.0),  # a factor of at least 1
        (Gain(form="amdahl", cap=9.0, signal="absent", share="half"), 9.0),
    ],
)
def test_amdahl(gain: Gain, expected: float) -> None:
    """Of the share alone, never slower, the cap where the factor is not known."""
    assert matching.predicted_gain(gain, {"four": 4.0, "half": 0.5}, CHIP) == expected
