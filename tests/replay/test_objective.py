"""Runs by energy and heat: clean ledgers of every reason, and forgeries of energies that only the new derivations find."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusolver.events.model import Objective
from gpusolver.replay.verify import verify

from .bounded import forge_bounded
from .metered import ENERGY, HOT_LIES, LIES, THERMAL, forge_metered
from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite

BY = {"energy": ENERGY, "thermal": THERMAL}


def rounds(path: Path) -> list[tuple[str, str]]:
    """(verdict, reason) of every round."""
    return [(e.body["verdict"], e.body["reason"]) for e in lines(path) if e.kind == "RoundJudged"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One ledger by each objective; not to be altered."""
    folder = tmp_path_factory.mktemp("metered")
    return {by: forge_metered(folder / f"{by}.db", objective) for by, objective in BY.items()}


@pytest.mark.parametrize("by", BY)
def test_an_honest_ledger(honest: dict[str, Path], by: str) -> None:
    """Clean, with wins and losses; what it was decided by is told beside the findings."""
    report = verify(honest[by], deep=True)
    assert report.findings == ()
    assert {"FASTER", "SLOWER", "SAME"} <= {verdict for verdict, _ in rounds(honest[by])}
    assert any(f"run1: verdicts by {by}" in note for note in report.notes)


@pytest.mark.parametrize("looks", [None, (4, 8)])
@pytest.mark.parametrize(("by", "lie"), [*(("energy", lie) for lie in LIES), *(("thermal", lie) for lie in HOT_LIES)])
def test_a_ledger_that_doubts(tmp_path: Path, by: str, lie: str, looks: tuple[int, ...] | None) -> None:
    path = forge_metered(tmp_path / "ledger.db", BY[by], lie, looks)
    assert found(path) == set()
    assert ("AMBIGUOUS", HOT_LIES[lie]) in rounds(path)
    assert "FASTER" not in {verdict for verdict, _ in rounds(path)}


# --- forgeries ---

Change = Callable[[list[Line], Path], "list[Line] | None"]
Edit = Callable[[dict[str, Any]], object]


def forged(source: Path, folder: Path, change: Change) -> set[str]:
    """Kinds of findings after the change, with every hash made right again."""
    path = folder / "forged.db"
    shutil.copyfile(source, path)
    rewrite(path, lambda events: change(events, path))
    return {kind for _, kind in found(path)}


def samples(edit: Edit, kind: str = "RoundJudged", **where: object) -> Change:
    """Other samples of the profile of the first such round (or of that event itself)."""

    def change(events: list[Line], path: Path) -> None:
        event = first(events, kind, **where)
        if kind == "RoundJudged":
            event = next(
                e for e in events
                if (e.stream, e.kind) == (event.stream, "Profiled") and e.body["round"] == event.body["round"]
            )  # fmt: skip
        content = json.loads(artifact(path, event.body["samples"]))
        edit(content)
        event.body["samples"] = add_artifact(path, compact(content).encode())

    return change


def no_energies(content: dict[str, Any]) -> None:
    del content["energy"]


def of_fewer_blocks(content: dict[str, Any]) -> None:
    content["energy"].pop()


def batches(side: slice, **factors: float) -> Edit:
    """Every batch of a side with other numbers."""

    def edit(content: dict[str, Any]) -> None:
        for block in content["energy"]:
            for batch in block[side]:
                batch.update({name: max(1, round(batch[name] * factor)) for name, factor in factors.items()})

    return edit


A, B = slice(0, 4, 3), slice(1, 3)


def registered(**fields: object) -> Change:
    """Other statistics."""
    return lambda events, path: first(events, "RunRegistered").body["statistics"].update(fields)


def objective(**fields: object) -> Change:
    return lambda events, path: first(events, "RunRegistered").body["statistics"]["objective"].update(fields)


def by_latency(events: list[Line], path: Path) -> None:
    del first(events, "RunRegistered").body["statistics"]["objective"]


def without_bounds(events: list[Line], path: Path) -> None:
    del first(events, "RunRegistered").body["statistics"]["bounds"]


def with_order(events: list[Line], path: Path) -> None:
    first(events, "RunRegistered").body["policy"]["order"] = "value"


def with_a_claim(events: list[Line], path: Path) -> None:
    claim = {
        "claim": "c1", "text": "half the energy", "problem": "toy", "contract": "tf32-allowed", "pool": "full",
        "comparison": "total", "at_least": 1.5, "decimals": 1,
    }  # fmt: skip
    first(events, "RunRegistered").body["claims"] = [claim]


def another_rounds_energies(events: list[Line], path: Path) -> None:
    """The energies of the start's noise floor beside the times of a comparison: measured once, told twice."""
    floor, pair = first(events, "NoiseFloorMeasured"), first(events, "HeadToHead", outcome="measured")
    content = json.loads(artifact(path, pair.body["samples"]))
    content["energy"] = json.loads(artifact(path, floor.body["samples"]))["energy"]
    pair.body["samples"] = add_artifact(path, compact(content).encode())


WON, LOST = {"verdict": "FASTER"}, {"verdict": "SLOWER"}
FORGERIES: dict[str, tuple[Change, set[str]]] = {
    "energies left out of a win": (samples(no_energies, **WON), {"verdict", "interval"}),
    "energies left out of a comparison": (samples(no_energies, "HeadToHead", outcome="measured"), {"interval"}),
    "energies of fewer blocks": (samples(of_fewer_blocks, **WON), {"derivation failed"}),
    "a win that drew more": (samples(batches(B, millijoules=3), **WON), {"verdict", "interval"}),
    "a win that drew a little less": (samples(batches(B, millijoules=0.97), **WON), {"interval"}),
    "an incumbent that drew more": (samples(batches(A, millijoules=1.1), **WON), {"interval"}),
    "a loss that drew less": (samples(batches(B, millijoules=0.2), **LOST), {"verdict", "interval"}),
    "calls that no chip can do": (samples(batches(B, calls=1000), **WON), {"verdict", "interval"}),
    "no energy at all": (samples(lambda c: c["energy"][0][1].update(millijoules=0), **WON), {"derivation failed"}),
    "more than a meter counts": (
        samples(lambda c: c["energy"][0][1].update(calls=10**30), **WON), {"derivation failed"},
    ),
    "a floor that is quieter": (
        samples(lambda c: c.update(energy=[[c["energy"][0][0]] * 4] * 8), "NoiseFloorMeasured", round=0),
        {"noise floor", "samples"},
    ),
    "energies told twice": (another_rounds_energies, {"samples"}),
    "by latency after all": (by_latency, {"verdict", "interval", "samples"}),
    "another bound": (objective(bound=0.5), {"registration"}),
    "a bound that none is under": (objective(bound=1.0, by="thermal"), {"registration"}),
    "no bounds": (without_bounds, {"registration"}),
    "worth in a run by energy": (with_order, {"registration"}),
    "a claim in a run by energy": (with_a_claim, {"registration", "claim"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(honest: dict[str, Path], tmp_path: Path, name: str) -> None:
    change, kinds = FORGERIES[name]
    assert forged(honest["energy"], tmp_path, change) >= kinds


_heat: dict[str, Any] = {
    "calls_per_s": 2000.0, "idle_w": 75.0,
    "stages": [{"k_per_w": 0.02, "tau_s": 0.001}, {"k_per_w": 0.05, "tau_s": 2.0}],
}  # fmt: skip
HOT: dict[str, tuple[Change, set[str]]] = {
    "another rate": (objective(heat={**_heat, "calls_per_s": 1000.0}), {"interval"}),
    "another time constant": (objective(heat={**_heat, "stages": [{"k_per_w": 0.02, "tau_s": 0.1}]}), {"interval"}),
    "no idle power": (objective(heat={**_heat, "idle_w": 0.0}), {"interval"}),
    "no heat": (objective(by="energy"), {"registration"}),
    "no stage": (objective(heat={**_heat, "stages": []}), {"registration"}),
    "a rate of never": (objective(heat={**_heat, "calls_per_s": 0.0}), {"registration"}),
    "longer batches": (samples(batches(B, milliseconds=1.1), **WON), {"interval"}),
    "batches that cannot keep up": (samples(batches(B, milliseconds=10, millijoules=2), **WON), {"verdict"}),
}


@pytest.mark.parametrize("name", HOT)
def test_a_forgery_of_heat_is_found(honest: dict[str, Path], tmp_path: Path, name: str) -> None:
    change, kinds = HOT[name]
    assert forged(honest["thermal"], tmp_path, change) >= kinds


def with_energies(content: dict[str, Any]) -> None:
    batch = {"millijoules": 1000, "calls": 100, "milliseconds": 300}
    content["energy"] = [
        [{**batch, "millijoules": 1000 + i + j} for j in range(4)] for i in range(len(content["blocks"]))
    ]


def test_energies_in_a_run_by_latency_are_a_finding_and_change_no_verdict(tmp_path: Path) -> None:
    path = forge_bounded(tmp_path / "ledger.db")
    assert forged(path, tmp_path, samples(with_energies, **WON)) == {"samples"}


def test_an_examination_has_no_objective(tmp_path: Path) -> None:
    from .exam_forge import forge_examination

    path = forge_examination(tmp_path / "ledger.db")
    wanted = {"by": "energy", "bound": 2.0}

    def change(events: list[Line]) -> None:
        first(events, "ExaminationRegistered").body["statistics"]["objective"] = wanted

    assert (1, "registration") in found(rewrite(path, change))


@pytest.mark.parametrize("objective_", BY.values(), ids=BY)
def test_by_looks(tmp_path: Path, objective_: Objective) -> None:
    """No rank at four blocks of a tail of 1/40, one at eight; energies are cut with the times."""
    path = forge_metered(tmp_path / "ledger.db", objective_, looks=(7, 8))
    assert found(path) == set()
    assert "FASTER" in {verdict for verdict, _ in rounds(path)}
