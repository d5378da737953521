"""One round on each kernel written blind to the rules, on this GPU: what must hold of any profile, known kind of kernel or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine.importing import imported
from gpusolver.engine.local import LocalExecutor

from ..corpus.blind_rounds import FILES, assert_holds, play

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor("cuda")
    yield executor
    executor.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_must_hold_of_a_round_holds(gpu: LocalExecutor, tmp_path: Path, path: Path) -> None:
    (problem,) = imported((str(path),), None, "cuda").values()
    play(tmp_path / "l.db", gpu, problem)
    assert_holds(tmp_path / "l.db", problem)
