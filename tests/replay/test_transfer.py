"""Leaving a family or a problem out of what is learnt: the committed recording, and the words for what a lesson did."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.events.model import Proposing
from gpusolver.replay.courses import CellPlayed, Course, Step
from gpusolver.replay.policy import Played
from gpusolver.replay.transfer import Held, _compared, transfer

RECORDING = Path(__file__).parents[2] / "problems" / "recordings" / "h200.v1" / "ledger.db"
ON, BOUNDS = Played(evolves=True), Proposing(support=2, purity_num=3, purity_den=4)


def effects(found: tuple[Held, ...]) -> list[str]:
    return [held.effect for held in found]


def test_another_family_teaches_nothing_on_the_recording() -> None:
    """Evidence counts in its context, and the family is part of that; no rule has problems enough to be narrowed."""
    found = transfer([str(RECORDING)], "family", ON, BOUNDS)
    assert effects(found) == ["nothing"] * 13
    assert all(held.alone == held.taught and not held.admitted for held in found)
    assert {held.out for held in found if "matmul" in held.cell or "gemm" in held.cell} == {"matmul"}


def test_another_problem_of_the_family_saves_a_round_and_no_kernel_is_lost() -> None:
    """Under fp32-strict one round of `matmul` and of `batched_gemm` is spared: three failures do what four did before."""
    found = {held.cell: held for held in transfer([str(RECORDING)], "problem", ON, BOUNDS)}
    taught = [cell for cell, held in found.items() if held.effect == "helps"]
    assert taught == [f"run2/{name}/fp32-strict/flags/on/1" for name in ("matmul", "batched_gemm")]
    assert {(found[cell].saved, found[cell].ratio) for cell in taught} == {(1, 1.0)}
    assert "hurts" not in effects(tuple(found.values()))
    assert all(found[cell].carried > 0 for cell in taught)


def test_problems_in_two_ledgers_teach_each_other_like_problems_in_one(tmp_path: Path) -> None:
    """`matmul` and `batched_gemm` under fp32-strict spare each other a round; apart neither is taught, together both are."""
    words = ["--contract", "fp32-strict", "--device", "recorded", "--arms", "off,on", "--recording"]
    paths = []
    for problem in ("matmul", "batched_gemm"):
        paths.append(str(tmp_path / f"{problem}.db"))
        told = CliRunner().invoke(main, ["run", problem, *words, str(RECORDING), "--ledger", paths[-1]])
        assert told.exit_code == 0, told.output
    apart = [held for path in paths for held in transfer([path], "problem", ON, BOUNDS)]
    assert effects(tuple(apart)) == ["nothing"] * 2
    together = transfer([*paths, paths[0]], "problem", ON, BOUNDS)
    assert [(held.cell, held.effect, held.saved, held.ratio) for held in together] == [
        (f"{path}:run1/{problem}/fp32-strict/flags/on/1", "helps", 1, 1.0)
        for path, problem in zip(paths, ("matmul", "batched_gemm"), strict=True)
    ]


def test_alone_is_the_record_itself_under_the_registered_policy() -> None:
    assert all(held.alone.parted is None for held in transfer([str(RECORDING)], "family", ON, None))


def course(wasted: int, time_us: float | None, end: str | None = "no rule fires") -> CellPlayed:
    step = Step(1, "rule", 1, "SAME", False, "failure", "kernel", "cell", 1)
    found = Course(tuple(replace(step, round=i) for i in range(wasted)), end, "kernel", time_us)
    return CellPlayed("cell", found, found, None, None, (), None)


@pytest.mark.parametrize(
    ("alone", "taught", "effect"),
    [
        (course(4, 100.0), course(9, 50.0), (-5, 2.0, "helps")),  # a faster kernel is worth more rounds
        (course(4, 100.0), course(0, 102.0), (4, 100 / 102, "hurts")),  # beyond 1 %
        (course(4, 100.0), course(1, 100.9), (3, 100 / 100.9, "helps")),
        (course(1, 100.0), course(4, 100.0), (-3, 1.0, "hurts")),
        (course(2, 100.0), course(2, 100.0), (0, 1.0, "nothing")),
        (course(2, 100.0), course(1, None, None), (None, None, "not known")),
    ],
)
def test_what_counts_as_help(alone: CellPlayed, taught: CellPlayed, effect: tuple[object, ...]) -> None:
    assert _compared(alone, taught, 0.01) == effect


def test_the_command_says_what_it_found() -> None:
    said = CliRunner().invoke(main, ["transfer", str(RECORDING), "--leave", "problem"])
    assert said.exit_code == 0
    assert (
        "13 cells: helps 2, hurts 0, nothing 11, not known 0; 2 wasted rounds saved in all; 0 different rules"
        in said.output
    )
    assert CliRunner().invoke(main, ["transfer", "no such file"]).exit_code == 1
