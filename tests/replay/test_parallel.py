"""A check spread over processes says what one process says, of sound ledgers and of altered ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events.reader import LedgerReader
from gpusolver.replay.merkle import Heads, Portion
from gpusolver.replay.parallel import boundaries
from gpusolver.replay.seal import Anchors
from gpusolver.replay.verify import Report, verify

from ..bench.copies import copies
from .sealed import VKEY, sealed
from .tamper import Line, lines, rewrite, unguarded

Change = Callable[[list[Line]], "list[Line] | None"]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of one length, a seal after the second and one at the end; not to be altered."""
    folder = tmp_path_factory.mktemp("several")
    path = copies(folder / "ledger.db", 400)
    assert {event.stream[:4] for event in lines(path)} == {"run1", "run2"}
    sealed(path, folder, signed=False)
    rewrite(
        path, lambda events: [*events, *(again(e, n) for n in (3, 4) for e in events if e.stream.startswith("run1"))]
    )
    sealed(path, folder, signed=False)
    return path


def again(event: Line, number: int) -> Line:
    """The event in another run."""
    payload = event.payload().replace('"run1', f'"run{number}')
    return Line(0, event.stream.replace("run1", f"run{number}", 1), event.kind, event.at, payload)


def _half(path: Path) -> int:
    with LedgerReader(path) as reader:
        return boundaries(reader, 2)[1]


@pytest.fixture
def ledger(several: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(several, tmp_path / "ledger.db"))


def both(path: Path, **anchors: object) -> tuple[Report, Report]:
    kept = Anchors(**anchors)  # type: ignore[arg-type]
    return verify(path, False, anchors=kept), verify(path, False, anchors=kept, jobs=2)


def test_portions_begin_where_runs_do(several: Path) -> None:
    """Runs of one length: halves begin with the third of four, thirds with runs 3 and 4 (at or after each third)."""
    with LedgerReader(several) as reader:
        starts = [reader.begins(f"run{number}") for number in (1, 2, 3, 4)]
        assert boundaries(reader, 2) == [1, starts[2]]
        assert boundaries(reader, 3) == [1, starts[2], starts[3]]
        assert boundaries(reader, 1) == [1]


def test_a_sound_ledger_gives_the_same_report(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the portions alone: here one process could not fall back on reading it all."""
    one = verify(several, False)
    monkeypatch.setattr("gpusolver.replay.verify.scan", None)
    spread = verify(several, False, jobs=2)
    assert one == spread and one.findings == () and len(one.seals) == 2
    assert len(one.runs) == 4 and one.counts["rounds"] == sum(len(run.rounds) for run in one.runs)


@given(
    leaves=st.integers(0, 1500), cut=st.integers(0, 1500), marks=st.lists(st.integers(0, 1500), max_size=4),
    wanted=st.lists(st.integers(0, 1500), max_size=4), step=st.integers(1, 300),
)  # fmt: skip
def test_a_tree_in_two_portions_is_the_tree(
    leaves: int, cut: int, marks: list[int], wanted: list[int], step: int
) -> None:
    """Wherever it is cut, marked or asked for: the heads are those of one pass."""
    cut, hashes = min(cut, leaves), [sha256(str(i).encode()).digest() for i in range(leaves)]
    whole = Heads(wanted)
    parts = [(0, cut, Portion(0, wanted)), (cut, leaves, Portion(cut, wanted))]
    for first, last, portion in ((0, leaves, whole), *parts):
        stops = sorted({*range(first, last, step), *(mark for mark in marks if first < mark < last), last})
        for at, upto in zip([first, *stops], stops, strict=False):
            portion.extend(hashes[at:upto])
            if upto in marks:
                portion.mark()
    joined = Heads(size for size in wanted if size <= 0)
    for _, _, portion in parts:
        portion.finish()
        joined.follow(portion.steps)
    assert (joined.size, joined.root(), joined.at) == (whole.size, whole.root(), whole.at)


def swap(events: list[Line]) -> None:
    """Two neighbours across the border of the portions."""
    at = next(i for i, event in enumerate(events) if event.stream == "run3")
    events[at - 1], events[at] = events[at], events[at - 1]


def late(events: list[Line]) -> list[Line]:
    """An event of the first run after the third has begun."""
    moved = next(event for event in events if event.kind == "RoundJudged")
    return [event for event in events if event is not moved] + [moved]


def twice(events: list[Line]) -> None:
    """Two runs of one name, in different portions."""
    for event in events:
        event.stream = event.stream.replace("run4", "run1")
        if event.kind == "RunRegistered" and event.body["run"] == "run4":
            event.body["run"] = "run1"


ALTERED: dict[str, Change] = {
    "swapped": swap,
    "late": late,
    "twice": twice,
    "gone": lambda events: [event for event in events if event.kind != "RunStopped"],
    "claimed": lambda events: next(e for e in reversed(events) if e.kind == "ClaimStated").body.update(answer="no"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_ledger_gives_the_same_report(ledger: Path, name: str) -> None:
    rewrite(ledger, ALTERED[name])
    one, spread = both(ledger)
    assert one == spread and one.findings


@pytest.mark.parametrize("where", ("first", "last", "border"))
def test_an_altered_row_gives_the_same_report(ledger: Path, where: str) -> None:
    """A stored time changed behind the chain: in either portion, and in the row that the second one begins behind."""
    at = {"first": 5, "last": _half(ledger) + 7, "border": _half(ledger) - 1}[where]
    with unguarded(ledger) as db:
        db.execute("UPDATE events SET recorded_at = '2020-01-01T00:00:00.000Z' WHERE seq = ?", (at,))
    one, spread = both(ledger)
    assert one == spread and (at, "hash") in {(f.seq, f.kind) for f in one.findings}


def test_a_signed_checkpoint_in_the_middle_is_found_by_portions(several: Path, tmp_path: Path) -> None:
    """A key and a checkpoint given: the mark lies in the middle of a portion, at no round number."""
    path = Path(shutil.copy(several, tmp_path / "signed.db"))
    _, kept = sealed(path, tmp_path)
    one, spread = both(path, checkpoints=kept.checkpoints, vkey=VKEY)
    assert one == spread and one.findings == () and len(one.seals) == 3
    other = kept.checkpoints[0].replace("example.com/lab\n", "example.com/lab\n1", 1)
    one, spread = both(path, checkpoints=(other,), vkey=VKEY)
    assert one == spread and "checkpoint" in {finding.kind for finding in one.findings}


def test_b112_a_clock_that_goes_back_is_told(ledger: Path) -> None:
    """In the middle of the first portion, and exactly where the second begins; it is no fault."""
    with LedgerReader(ledger) as reader:
        seals = sum(row.type == "LedgerSealed" and row.seq < _half(ledger) for row in reader.rows())
    border = _half(ledger) - seals

    def change(events: list[Line]) -> list[Line]:
        kept = [event for event in events if event.kind != "LedgerSealed"]
        for seq, event in enumerate(kept, start=1):
            late = seq < 100 or 150 <= seq < border
            event.at = f"2026-01-01T00:00:0{2 if late else 1}.000Z"
        return kept

    rewrite(ledger, change)
    with LedgerReader(ledger) as reader:
        assert boundaries(reader, 2)[1] == border
    one, spread = both(ledger)
    assert one == spread and one.findings == ()
    assert any(note.startswith("the clock went back 2 times, first at event 100:") for note in one.notes)


def test_a_row_missing_at_the_border_gives_the_same_report(ledger: Path) -> None:
    with unguarded(ledger) as db:
        db.execute("DELETE FROM events WHERE seq = ?", (_half(ledger) - 1,))
    one, spread = both(ledger)
    assert one == spread and "sequence" in {finding.kind for finding in one.findings}


def test_rounds_past_the_limit_are_counted_not_listed(several: Path) -> None:
    """One run has its rounds listed; of all four, the number is told either way."""
    rounds = len(verify(several, False).runs[0].rounds)
    some, spread = (verify(several, False, listed=rounds, jobs=jobs) for jobs in (1, 2))
    assert some == spread and some.counts["rounds"] == 4 * rounds
    assert [(len(run.rounds), run.unlisted) for run in some.runs] == [(rounds, 0), *[(0, rounds)] * 3]
    assert any(f"{4 * rounds} rounds checked" in note for note in some.notes)
