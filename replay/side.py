"""One ledger, or its first events, opened for comparing: its events by run and cell, and its artifacts. Never checks them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from ..events.errors import GpuSolverError
from ..events.model import Profiled
from ..events.reader import LedgerReader
from ..events.rows import Row
from .findings import Findings
from .grammar import Round, Script, parse
from .integrity import scan
from .runs import RunEvents, sort_out

T = TypeVar("T")


class Side:
    """A context manager; `upto` is the number of events that are read, None for all. Raises UnreadableLedger."""

    def __init__(self, path: Path, upto: int | None) -> None:
        self._reader = LedgerReader(path)
        self._upto = upto

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def rows(self) -> Iterator[Row]:
        """The events as stored."""
        return islice(self._reader.rows(), self._upto)

    def runs(self) -> dict[str, RunEvents]:
        """The runs by id; whatever is wrong with them is told by the verification, not here."""
        findings = Findings()
        return {run.run: run for run in sort_out(scan(self.rows(), findings, spelling=False), findings)}

    def artifact(self, digest: str | None, shape: type[T]) -> T | None:
        """A JSON artifact; None where it is not there, or is not of that shape."""
        try:
            return None if digest is None else msgspec.json.decode(self._reader.artifact(digest), type=shape)
        except (GpuSolverError, msgspec.MsgspecError, ValueError, RecursionError):
            return None


def script(run: RunEvents, stream: str) -> Script:
    """A cell's events in rounds; the empty script of a cell that has not begun."""
    return parse(run.cells.get(stream, []), Findings())


def ended(script: Script) -> list[Round]:
    """The attempts that came to an end of their own, in order: one for each round."""
    return [r for r in script.rounds if r.interrupted is None and (r.judged or (not r.attempted.round and r.gated))]


def latest_signals(rounds: list[Round], source: str | None) -> dict[str, float]:
    """What was last measured of a source."""
    profiles: list[Profiled] = [r.profiled for r in rounds if r.profiled is not None and r.profiled.source == source]
    return profiles[-1].signals if profiles else {}
