"""What the verifier says of a ledger, as a set to look into."""

from __future__ import annotations

from pathlib import Path

from gpusolver.replay.findings import KINDS
from gpusolver.replay.verify import verify


def found(path: Path) -> set[tuple[int, str]]:
    """(seq, kind) of every finding; all kinds are of the closed list."""
    report = verify(path, deep=True)
    assert all(finding.kind in KINDS for finding in report.findings)
    return {(finding.seq, finding.kind) for finding in report.findings}
