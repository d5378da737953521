"""The committed reproduction of the H200 ledger's claims on an H200: it verifies against its origin, and confirms all five. Reads both; measures nothing."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from gpusolver.__main__ import main
from gpusolver.events.model import ClaimStated, ExaminationRegistered, StatementReproduced
from gpusolver.events.reader import LedgerReader

RECORDINGS = Path(__file__).parents[2] / "problems" / "recordings"
ORIGIN, LEDGER = RECORDINGS / "h200.v1" / "ledger.db", RECORDINGS / "reproduction.v1" / "h200.db"


def test_it_verifies_against_its_origin() -> None:
    found = CliRunner().invoke(main, ["replay", str(LEDGER), "--verify", "--origin", str(ORIGIN)])
    assert found.exit_code == 0, found.output
    assert "findings: none" in found.output and "its origin is the ledger that was given" in found.output


def test_every_claim_of_the_origin_is_asked_and_confirmed() -> None:
    """Medians: within 5 % of those that were recorded on another day."""
    with LedgerReader(ORIGIN) as origin, LedgerReader(LEDGER) as ledger:
        claims = {row.seq for row in origin.recorded() if isinstance(row.event, ClaimStated)}
        events = [row.event for row in ledger.recorded()]
    (plan,) = [event for event in events if isinstance(event, ExaminationRegistered)]
    answers = {event.statement: event for event in events if isinstance(event, StatementReproduced)}
    assert isinstance(plan.statements, tuple) and {stated.seq for stated in plan.statements} == claims
    assert len(claims) == 5 and {answer.answer for answer in answers.values()} == {"confirmed"}
    for stated in plan.statements:
        (here,) = answers[stated.seq].medians
        assert stated.at_least is not None and here >= stated.at_least
        assert all(abs(here / there - 1) < 0.05 for there in stated.medians)
