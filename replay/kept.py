"""What a verification keeps of the runs and examinations that it has let go, and how portions are joined. Never checks anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from .exams import ExamView
from .integrity import SEAL_STREAM, Backwards, Item, Scanned
from .merkle import Heads, Portion, Step
from .origin import Named
from .views import RunView


class Part(msgspec.Struct, frozen=True):
    """A portion of a ledger in which no fault was found: where it begins and ends, its leaves, its seals, and its views."""

    first: int
    last: int
    head: str
    back: Backwards
    steps: tuple[Step, ...]
    seals: tuple[Item, ...]
    runs: tuple[tuple[int, RunView, int], ...]
    exams: tuple[tuple[int, ExamView], ...]
    cells: int
    notes: tuple[str, ...]
    origins: tuple[Named, ...]


class Kept:
    """Views in the order met, notes, origins and counts; of runs past `listed` rounds (None: of none) only what is counted.

    `learns`: a run says that it learnt from a ledger. `originals`: digests of the files that problems were imported from.
    """

    def __init__(self, listed: int | None) -> None:
        self.listed = listed
        self.runs: list[tuple[int, RunView, int]] = []
        self.exams: list[tuple[int, ExamView]] = []
        self.notes: list[str] = []
        self.origins: list[Named] = []
        self.cells = self.rounds = 0
        self.learns = False
        self.originals: set[str] = set()

    def run(self, seq: int, view: RunView, rounds: int) -> None:
        """Keep the view of a run that was registered at `seq`."""
        self.rounds += rounds
        if self.listed is not None and self.rounds > self.listed:
            view = replace(view, rules=(), rounds=(), ends={}, table=(), unlisted=rounds)
        self.runs.append((seq, view, rounds))

    def views(self) -> tuple[tuple[RunView, ...], tuple[ExamView, ...]]:
        """All views in order of registration."""
        runs, exams = sorted(self.runs, key=lambda kept: kept[0]), sorted(self.exams, key=lambda kept: kept[0])
        return tuple(view for _, view, _ in runs), tuple(view for _, view in exams)

    def unlisted(self) -> list[str]:
        """Words on rounds that are counted alone."""
        if self.listed is None or self.rounds <= self.listed:
            return []
        return [f"{self.rounds} rounds checked; runs past the first {self.listed} rounds are counted, not listed"]

    def part(self, first: int, scanned: Scanned, seals: Sequence[Item]) -> Part:
        """All this as a portion of a ledger that begins at `first`."""
        assert isinstance(scanned.heads, Portion)
        scanned.heads.finish()
        return Part(
            first, scanned.last, scanned.head, scanned.back, tuple(scanned.heads.steps), tuple(seals), tuple(self.runs),
            tuple(self.exams), self.cells, tuple(self.notes), tuple(self.origins),
        )  # fmt: skip

    def join(self, parts: Sequence[Part], sizes: Iterable[int]) -> Scanned | None:
        """Take up portions that follow one another from the first event on; None where they do not."""
        last, head, heads, seals = 0, "", Heads(size for size in sizes if size <= 0), list[Item]()
        back = Backwards()
        for part in parts:
            if part.first != last + 1:
                return None
            heads.follow(part.steps)
            for seq, view, rounds in part.runs:
                self.run(seq, view, rounds)
            self.exams += part.exams
            self.notes += part.notes
            self.origins += part.origins
            self.cells += part.cells
            seals += part.seals
            last, head = part.last, part.head
            back = Backwards(back.times + part.back.times, back.first or part.back.first, part.back.at)
        return Scanned({SEAL_STREAM: seals} if seals else {}, last, head, heads, back) if parts else None
