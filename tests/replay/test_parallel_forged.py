"""Random edits of a ledger of several runs: a check spread over four portions reports byte for byte what one pass does."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from gpusolver.events.errors import UnreadableLedger
from gpusolver.replay.verify import verify

from . import forgeries
from .forgeries import EDITS
from .test_parallel import several

__all__ = ["several"]
SAMPLE, AT_ALL = 2 * len(EDITS), 4000


class Here:
    """A pool that works at once and in this process: what is asked is what the portions say, not how fast."""

    def __init__(self, workers: int, **more: object) -> None:
        assert workers > 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def submit(self, work: Callable[..., Any], *words: object) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*words))
        except Exception as error:  # noqa: BLE001 - handed on, as a pool does
            done.set_exception(error)
        return done


def told(path: Path, jobs: int) -> bytes:
    """The whole report as JSON, or the words of a refusal."""
    try:
        return msgspec.json.encode(verify(path, False, jobs=jobs))
    except UnreadableLedger as error:
        return str(error).encode()


def same(several: Path, folder: Path, count: int) -> int:
    """Make `count` edits, one kind after the other; how many of them have findings."""
    original, found = forgeries.read(several), 0
    path = folder / "edited.db"
    for turn in range(count):
        rng, book = random.Random(turn), forgeries.forked(original)
        EDITS[turn % len(EDITS)](rng, book, len(original.rows))
        forgeries.write(book, several, path)
        one = told(path, 1)
        assert told(path, 4) == one, (turn, EDITS[turn % len(EDITS)].__name__)
        found += b'"findings":[]' not in one
    return found


def test_some_edits(several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusolver.replay.parallel.ProcessPoolExecutor", Here)
    assert 0 < same(several, tmp_path, SAMPLE) < SAMPLE


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_thousands_of_edits(several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusolver.replay.parallel.ProcessPoolExecutor", Here)
    found = same(several, tmp_path, AT_ALL)
    print(f"\n{AT_ALL} edits, {found} with findings: four portions report what one pass does")
    assert 0 < found < AT_ALL
