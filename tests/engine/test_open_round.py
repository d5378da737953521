"""A ledger that ends between "round attempted" and its outcome (B113): the round is closed as interrupted, played again, and nobody is blamed."""

from __future__ import annotations

from pathlib import Path

from gpusolver.engine.run import Run
from gpusolver.events.model import Event, RoundAttempted, RoundInterrupted, RoundJudged
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay.verify import Report, verify

from .support import FakeExecutor, cell_events, ignore, only, play, request


def cut_after(whole: Path, path: Path, round_: int) -> Path:
    """The ledger up to the attempt of a round, and an artifact that the kill left without an event."""
    with LedgerReader(whole) as reader, LedgerWriter(path) as ledger:
        blobs = [(reader.artifact(row.digest), row.media_type) for row in reader.artifact_rows()]
        for item in reader.recorded():
            more = [*blobs, (b"half a profile", "text/plain")] if item.seq == 1 else []
            ledger.append(item.stream, item.version - 1, [item.event], more)
            if isinstance(item.event, RoundAttempted) and item.event.round == round_:
                return path
    raise AssertionError(f"no round {round_}")


def confidences(report: Report) -> dict[str, float]:
    return {f"{row.cell} {row.rule}": row.confidence for run in report.runs for row in run.rules}


def test_b113_a_round_without_an_end_is_closed_played_again_and_credits_nobody(tmp_path: Path) -> None:
    """Round 3 is open: its attempt 1 ends as interrupted, attempt 2 follows, and the rules stand as if nothing had happened."""
    whole = tmp_path / "whole.db"
    play(whole, FakeExecutor(), request("on", rounds=6))
    path = cut_after(whole, tmp_path / "ledger.db", 3)
    with LedgerWriter(path) as ledger:
        Run(ledger, FakeExecutor(), ignore).resume()

    events: list[Event] = cell_events(path, "on")
    (closed,) = only(events, RoundInterrupted)
    assert (closed.round, closed.attempt) == (3, 1)
    after = only(events[events.index(closed) :], RoundAttempted)
    assert [(e.round, e.attempt) for e in after] == [(3, 2), (4, 1), (5, 1), (6, 1)]
    assert [e.round for e in only(events, RoundJudged)] == [1, 2, 3, 4, 5, 6]
    report, before = verify(path, True), verify(whole, True)
    assert report.findings == ()
    assert confidences(report) == confidences(before)
    # What the kill left behind is told: the stray bytes.
    orphans = [note for note in report.notes if "named by no event" in note]
    assert len(orphans) == 1 and [note for note in before.notes if "named by no event" in note] == []
