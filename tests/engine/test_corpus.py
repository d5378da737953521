"""In which order a soak meets the corpus. Runs no candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.engine.corpus import candidates, subjects
from gpusolver.events.errors import BadInput

FOLDER = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_cheats_and_attacks_come_in_turn_and_an_honest_one_after_each(device: str) -> None:
    """However early a soak is cut, it has met both kinds."""
    found = subjects(FOLDER, device, 100)
    kinds = [one.name.partition("/")[0] for one in found]
    assert kinds == ["cheats", "honest", "survival", "honest"] * 50
    assert len({one.source for one in found}) == 200


def test_when_one_kind_is_through_the_other_goes_on_and_then_both_begin_again() -> None:
    listed = [one.file for one in candidates(FOLDER, "cpu") if one.kind == "cheats" and not one.time_cheat]
    met = [one.name.split(" ")[0] for one in subjects(FOLDER, "cpu", 400)][::2]
    cheats = [name for name in met if name.startswith("cheats/")]
    assert 100 < 2 * len(listed) < 300 and cheats[: len(listed)] == listed and cheats[len(listed)] == listed[0]
    assert not any(name.startswith("cheats/") for name in met[2 * len(listed) : met.index(listed[0], 1)])


def test_a_folder_without_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"corpus\.toml"):
        subjects(tmp_path, "cpu", 1)
