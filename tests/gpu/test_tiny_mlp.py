"""Twenty small layers: the launches are named as what takes the time, and a CUDA graph answers them. Needs a GPU, and writes a ledger of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpusolver.__main__ import main
from gpusolver.events.model import HeadToHead, RoundJudged
from gpusolver.events.reader import LedgerReader

pytestmark = pytest.mark.gpu

FILE = Path(__file__).parent / "tiny_mlp.py"


def test_launch_overhead_fires_and_its_prescription_is_three_and_a_half_times_as_fast(tmp_path: Path) -> None:
    """Forty kernels of a few microseconds, each of which the host takes as long to launch; a graph is launched once."""
    ledger = tmp_path / "mlp.db"
    words = [
        "run",
        str(FILE),
        "--rules",
        "full",
        "--arms",
        "on",
        "--rounds",
        "6",
        "--blocks",
        "40",
        "--ledger",
        str(ledger),
    ]
    said = CliRunner().invoke(main, words, env={"COLUMNS": "160"})
    assert said.exit_code == 0, said.output
    with LedgerReader(ledger) as reader:
        events = [row.event for row in reader.recorded()]
    faster = [e.rule for e in events if isinstance(e, RoundJudged) and e.verdict == "FASTER"]
    assert "launch_overhead" in faster, said.output
    total = next(e.interval for e in events if isinstance(e, HeadToHead) and e.comparison == "total")
    assert total is not None and total.median >= 3.5, said.output
