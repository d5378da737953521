"""Ledgers with bounds: clean ones of every reason, and forgeries that only the new derivations find."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusolver.replay.verify import verify

from .bounded import DOUBTS, GATES, forge_bounded
from .exam_forge import forge_examination
from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite

Change = Callable[[list[Line], Path], "list[Line] | None"]
Edit = Callable[[dict[str, Any]], object]
RIGHT = {"rel_l2": 4e-4, "max_rms": 4e-3, "nonfinite": 0}
WRONG = {"rel_l2": 0.5, "max_rms": 0.5, "nonfinite": 0}


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One ledger for each lie, and an honest one; not to be altered."""
    folder = tmp_path_factory.mktemp("bounded")
    return {lie: forge_bounded(folder / f"{lie or 'honest'}.db", lie) for lie in ("", *DOUBTS, *GATES)}


def reasons(path: Path) -> list[tuple[str, str]]:
    """(verdict, reason) of every round."""
    return [(e.body["verdict"], e.body["reason"]) for e in lines(path) if e.kind == "RoundJudged"]


def test_an_honest_ledger(bounded: dict[str, Path]) -> None:
    """Verifies clean, its incumbents change twice in a cell, and its claim is upheld as stated."""
    report = verify(bounded[""], deep=True)
    assert report.findings == ()
    assert [claim.agree for claim in report.runs[0].claims] == [True]
    assert reasons(bounded[""]).count(("FASTER", "interval beyond margin")) >= 4
    assert not {reason for _, reason in reasons(bounded[""])} & (
        set(DOUBTS.values()) | {f"gate: {g}" for g in GATES.values()}
    )


@pytest.mark.parametrize("lie", [*DOUBTS, *GATES])
def test_a_ledger_that_doubts(bounded: dict[str, Path], lie: str) -> None:
    """Verifies clean, no candidate with a dot wins, and the reason is that of the lie."""
    assert found(bounded[lie]) == set()
    reason = DOUBTS.get(lie) or f"gate: {GATES[lie]}"
    assert ("AMBIGUOUS", reason) in reasons(bounded[lie])
    assert "FASTER" not in {verdict for verdict, _ in reasons(bounded[lie])}


@pytest.mark.parametrize("lie", ["", *DOUBTS])
def test_by_looks(tmp_path: Path, lie: str) -> None:
    """No rank at four blocks of a tail of 1/40, one at eight; the lie about outputs is in the last pair, and so in no earlier look."""
    assert found(forge_bounded(tmp_path / "ledger.db", lie, looks=(4, 8))) == set()


# --- forgeries ---


def edited(path: Path, body: dict[str, Any], role: str, edit: Edit) -> None:
    """An event's artifact, altered."""
    content = json.loads(artifact(path, body[role]))
    edit(content)
    body[role] = add_artifact(path, compact(content).encode())


def inside(kind: str, role: str, edit: Edit, won: bool = True, **where: object) -> Change:
    """The artifact of the first such event of a round that was won (or that was not decided)."""

    def change(events: list[Line], path: Path) -> None:
        verdict = "FASTER" if won else "AMBIGUOUS"
        judged = first(events, "RoundJudged", verdict=verdict)
        fields = {"round": judged.body["round"], **where}
        event = next(
            e for e in events
            if e.stream == judged.stream and e.kind == kind and all(e.body[k] == v for k, v in fields.items())
        )  # fmt: skip
        edited(path, event.body, role, edit)

    return change


def compared(edit: Edit) -> Change:
    """The samples of the first measured comparison."""
    return lambda events, path: edited(path, first(events, "HeadToHead", outcome="measured").body, "samples", edit)


def bounds(**fields: object) -> Change:
    """Other bounds in the registration."""
    return lambda events, path: first(events, "RunRegistered").body["statistics"]["bounds"].update(fields)


def no_bounds(events: list[Line], path: Path) -> None:
    del first(events, "RunRegistered").body["statistics"]["bounds"]


def put(*at: Any, value: object) -> Edit:
    """Another value at a place."""

    def edit(content: Any) -> None:
        for step in at[:-1]:
            content = content[step]
        content[at[-1]] = value

    return edit


def drop(*at: Any) -> Edit:
    """Without what is at a place."""

    def edit(content: Any) -> None:
        for step in at[:-1]:
            content = content[step]
        del content[at[-1]]

    return edit


def at_start(kind: str, role: str, edit: Edit, won: bool = True) -> Change:
    """The same of round 0 of that cell."""
    return inside(kind, role, edit, won, round=0)


def quicker(content: dict[str, Any]) -> None:
    """Every time a tenth: ratios, and so interval and floor, stay (each is a multiple of ten)."""
    content["blocks"] = [[t // 10 for t in block] for block in content["blocks"]]


def tenfold(content: dict[str, Any]) -> None:
    content["blocks"] = [[t * 10 for t in block] for block in content["blocks"]]


def alone(edit: Edit) -> Change:
    """The samples of the noise floor of the first incumbent that another one beat: ratios as they were, so the floor stands."""

    def change(events: list[Line], path: Path) -> None:
        wins = [e for e in events if e.kind == "RoundJudged" and e.body["verdict"] == "FASTER"]
        second = next(w for i, w in enumerate(wins) if i and w.stream == wins[i - 1].stream)
        floors = [e for e in events if e.kind == "NoiseFloorMeasured" and e.body["source"] == second.body["incumbent"]]
        edited(path, next(e for e in floors if e.stream == second.stream).body, "samples", edit)

    return change


def quiet(**fields: object) -> Change:
    """Other bounds, and a watch that is not asked: a crowded incumbent has no excess of its own to allow the candidate any."""
    return bounds(wall_slack_ns=6000, **fields)


def longer_alone(events: list[Line], path: Path) -> None:
    quiet()(events, path)
    at_start("NoiseFloorMeasured", "samples", tenfold, won=False)(events, path)


def one_repeat(content: dict[str, Any]) -> None:
    content["repeats"][-1] = WRONG


HONEST: dict[str, tuple[Change, str]] = {
    "outputs dropped": (inside("Profiled", "samples", drop("outputs")), "verdict"),
    "no pairs": (inside("Profiled", "samples", put("outputs", "pairs", value=[])), "verdict"),
    "no ends": (inside("Profiled", "samples", put("outputs", "ends", value=[])), "verdict"),
    "one pair dropped": (inside("Profiled", "samples", drop("outputs", "pairs", 3)), "samples"),
    "a pair far apart": (inside("Profiled", "samples", put("outputs", "pairs", 3, value=WRONG)), "verdict"),
    "an end of the incumbent": (inside("Profiled", "samples", put("outputs", "ends", 0, 0, value=WRONG)), "verdict"),
    "an end without an error": (
        inside("Profiled", "samples", put("outputs", "ends", 1, 1, "rel_l2", value=None)),
        "verdict",
    ),
    "a pair that is no number": (
        inside("Profiled", "samples", put("outputs", "pairs", 0, "nonfinite", value=1)),
        "verdict",
    ),
    "outputs of another shape": (
        inside("Profiled", "samples", put("outputs", "ends", 0, value=[RIGHT])),
        "derivation failed",
    ),
    "a wall that took longer": (inside("KernelGated", "report", put("wall", "ns", value=16_000_000)), "verdict"),
    "a wall of fewer calls": (inside("KernelGated", "report", put("wall", "calls", value=1)), "verdict"),
    "no wall": (inside("KernelGated", "report", put("wall", value=None)), "verdict"),
    "no wall of the start": (at_start("KernelGated", "report", drop("wall")), "verdict"),
    "a wrong repeat": (inside("KernelGated", "report", one_repeat), "gate"),
    "a wrong call under the watch": (inside("KernelGated", "report", put("wall", "outputs", 2, value=WRONG)), "gate"),
    "large inputs at the contract's limits": (inside("KernelGated", "report", put("draws", 2, "eager", "rel_l2", value=0.0)), "gate"),
    "denormal inputs that eager bears": (inside("KernelGated", "report", put("draws", 3, "eager", value=RIGHT)), "gate"),
    "denormal inputs said to be plain": (inside("KernelGated", "report", drop("draws", 3, "kind")), "gate"),
    "an unknown kind": (inside("KernelGated", "report", put("draws", 3, "kind", value="odd")), "derivation failed"),
    "an incumbent that was quicker alone": (alone(quicker), "verdict"),
    "more active cycles": (
        inside("Profiled", "counters", put("metrics", "sm__cycles_active.avg", value=1e9)),
        "verdict",
    ),
    "a narrower bound on the incumbent alone": (bounds(alone=0.0), "verdict"),
    "a wider demand on the active cycles": (bounds(busy=1.0), "verdict"),
    "bounds below 0": (bounds(alone=-0.1), "registration"),
    "slack below 0": (bounds(wall_slack_ns=-1), "registration"),
    "no share of the active time": (bounds(busy=0.0), "registration"),
    "more than the active time": (bounds(busy=1.5), "registration"),
    "a comparison without outputs": (compared(drop("outputs")), "head to head"),
    "a comparison without ends": (compared(put("outputs", "ends", value=[])), "head to head"),
    "a comparison's pair far apart": (compared(put("outputs", "pairs", 0, value=WRONG)), "head to head"),
    "a comparison's pair dropped": (compared(drop("outputs", "pairs", 0)), "samples"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_a_forgery_is_found(bounded: dict[str, Path], tmp_path: Path, name: str) -> None:
    """By its own derivation, with the chain rebuilt behind it."""
    change, kind = HONEST[name]
    path = Path(shutil.copy(bounded[""], tmp_path / "ledger.db"))
    rewrite(path, lambda events: change(events, path))
    assert kind in {k for _, k in found(path)}


def undone(lie: str) -> list[tuple[str, Change]]:
    """What a forger does to a round that a lie left undecided, so that it would have been won."""
    pairs = {
        "no wall": [inside("KernelGated", "report", put("wall", value={"calls": 16, "ns": 16 * 95_000, "outputs": [RIGHT]}), won=False)],
        "crowded": [quiet(alone=0.2), longer_alone],
        "slow alone": [at_start("NoiseFloorMeasured", "samples", tenfold, won=False)],
        "late": [bounds(wall_slack_ns=600_000), inside("KernelGated", "report", put("wall", "ns", value=16 * 95_000), won=False)],
        "busy": [bounds(busy=0.4), inside("Profiled", "counters", drop("metrics", "sm__cycles_active.avg"), won=False)],
        "wrong pair": [inside("Profiled", "samples", put("outputs", "pairs", -1, value=RIGHT), won=False)],
        "wrong end": [inside("Profiled", "samples", put("outputs", "ends", 1, 1, value=RIGHT), won=False)],
        "no outputs": [inside("Profiled", "samples", put("outputs", value={"pairs": [RIGHT] * 16, "ends": [[RIGHT, RIGHT]]}), won=False)],
    }  # fmt: skip
    return [(lie, change) for change in (no_bounds, *pairs[lie])]


@pytest.mark.parametrize(("lie", "change"), [one for lie in DOUBTS for one in undone(lie)])
def test_a_doubt_that_is_taken_away(bounded: dict[str, Path], tmp_path: Path, lie: str, change: Change) -> None:
    """Without the registered bounds, with looser ones, or with other facts, the round would have been won: its verdict is found."""
    path = Path(shutil.copy(bounded[lie], tmp_path / "ledger.db"))
    judged = first(lines(path), "RoundJudged", verdict="AMBIGUOUS", reason=DOUBTS[lie]).seq
    rewrite(path, lambda events: change(events, path))
    verdicts = {(f.seq, f.expected) for f in verify(path, deep=True).findings if f.kind == "verdict"}
    assert (judged, "FASTER") in verdicts


@pytest.mark.parametrize("lie", GATES)
def test_a_gate_that_is_said_to_pass(bounded: dict[str, Path], tmp_path: Path, lie: str) -> None:
    """The report says otherwise."""
    path = Path(shutil.copy(bounded[lie], tmp_path / "ledger.db"))
    gated = first(lines(path), "KernelGated", outcome=GATES[lie]).seq
    rewrite(path, lambda events: first(events, "KernelGated", outcome=GATES[lie]).body.update(outcome="passed"))
    expected = {(f.seq, f.expected) for f in verify(path, deep=True).findings if f.kind == "gate"}
    assert (gated, f"outcome {GATES[lie]}") in expected


def test_a_latest_gate_and_floor(bounded: dict[str, Path]) -> None:
    """In some cell an incumbent is beaten that was itself a candidate: its gate and its floor are of an earlier round than 0."""
    starts = {e.body["source"] for e in lines(bounded[""]) if e.kind == "KernelGenerated" and e.body["round"] == 0}
    won = [e.body for e in lines(bounded[""]) if e.kind == "RoundJudged" and e.body["verdict"] == "FASTER"]
    assert any(body["incumbent"] not in starts for body in won)


@pytest.mark.parametrize(("sides", "doubted"), [((0, 3), False), ((1, 2), True)])
def test_alone_is_the_second_side(
    bounded: dict[str, Path], tmp_path: Path, sides: tuple[int, int], doubted: bool
) -> None:
    """Of a noise floor whose A samples are a tenth, and of one whose B samples are: either is no such floor, the latter doubts a round."""

    def edit(content: dict[str, Any]) -> None:
        for block in content["blocks"]:
            for at in sides:
                block[at] //= 10

    path = Path(shutil.copy(bounded[""], tmp_path / "ledger.db"))
    rewrite(path, lambda events: alone(edit)(events, path))
    kinds = {kind for _, kind in found(path)}
    assert "noise floor" in kinds
    assert ("verdict" in kinds) is doubted


def test_a_comparison_that_was_wrong_answers_no_claim(bounded: dict[str, Path], tmp_path: Path) -> None:
    """The claim rests on `endpoint`, whose interval is as it was."""

    def change(events: list[Line]) -> None:
        edited(path, first(events, "HeadToHead", comparison="endpoint").body, "samples", drop("outputs"))

    path = Path(shutil.copy(bounded[""], tmp_path / "ledger.db"))
    rewrite(path, change)
    claim = first(lines(path), "ClaimStated").seq
    assert {(claim, "claim")} < found(path)
    derived = verify(path, deep=True).runs[0].claims[0].derived
    assert derived is not None and derived.answer == "unanswerable"


def test_a_comparison_called_wrong_whose_outputs_are_right(bounded: dict[str, Path], tmp_path: Path) -> None:
    """Who dislikes a ratio cannot take it back by a word."""

    def change(events: list[Line]) -> None:
        first(events, "HeadToHead", outcome="measured").body.update(outcome="wrong while timed", interval=None)

    path = Path(shutil.copy(bounded[""], tmp_path / "ledger.db"))
    rewrite(path, change)
    seq = first(lines(path), "HeadToHead", outcome="wrong while timed").seq
    assert {(seq, "head to head"), (seq, "interval")} <= found(path)


def test_a_comparison_called_wrong_of_which_no_outputs_are_shown(bounded: dict[str, Path], tmp_path: Path) -> None:
    """Nor by leaving out what would show it right."""

    def change(events: list[Line]) -> None:
        event = first(events, "HeadToHead", outcome="measured")
        edited(path, event.body, "samples", drop("outputs"))
        event.body.update(outcome="wrong while timed", interval=None)

    path = Path(shutil.copy(bounded[""], tmp_path / "ledger.db"))
    rewrite(path, change)
    seq = first(lines(path), "HeadToHead", outcome="wrong while timed").seq
    assert (seq, "head to head") in found(path)


# --- pairs of an examination ---


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """An examination with bounds, whose pairs were looked at while timed."""
    path = forge_examination(tmp_path / "ledger.db")

    def change(events: list[Line]) -> None:
        events[0].body["statistics"]["bounds"] = {"alone": 0.02, "wall_slack_ns": 0, "busy": 0.9}
        for event in events:
            if event.kind == "PairCompared":
                edited(path, event.body, "samples", looked_at)

    return rewrite(path, change)


def looked_at(content: dict[str, Any]) -> None:
    content["outputs"] = {"pairs": [RIGHT] * (2 * len(content["blocks"])), "ends": [[RIGHT, RIGHT]]}


def test_pairs_are_not_asked_for_witnesses(exam: Path) -> None:
    """No wall clock anywhere, and FASTER stands."""
    assert found(exam) == set()
    assert "FASTER" in {e.body["verdict"] for e in lines(exam) if e.kind == "PairCompared"}


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (drop("outputs"), "verdict"),
        (put("outputs", "ends", value=[]), "verdict"),
        (put("outputs", "pairs", 1, value=WRONG), "verdict"),
        (put("outputs", "ends", 0, 0, value=WRONG), "verdict"),
        (drop("outputs", "pairs", 1), "samples"),
    ],
)
def test_a_pair_that_was_wrong_while_timed(exam: Path, edit: Edit, kind: str) -> None:
    """Whatever its interval says."""
    rewrite(exam, lambda events: edited(exam, first(events, "PairCompared", pair="better").body, "samples", edit))
    seq = first(lines(exam), "PairCompared", pair="better").seq
    assert (seq, kind) in found(exam)


def test_an_examination_registers_bounds_in_their_ranges(exam: Path) -> None:
    """As a run does."""
    rewrite(exam, lambda events: events[0].body["statistics"]["bounds"].update(busy=2.0))
    assert (1, "registration") in found(exam)
