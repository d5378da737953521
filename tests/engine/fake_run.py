"""Child process: plays or resumes a run on made-up kernels, slowly, so that it can be killed part-way. Measures nothing.

Usage: python -m tests.engine.fake_run LEDGER SECONDS_PER_MEASUREMENT [resume]
"""

from __future__ import annotations

import sys

from gpusolver.engine.run import Run
from gpusolver.events.writer import LedgerWriter

from .support import FakeExecutor, ignore, request, slow

if __name__ == "__main__":
    path, seconds, *more = sys.argv[1:]
    with LedgerWriter(path) as ledger:
        run = Run(ledger, FakeExecutor(before=slow(float(seconds))), ignore)
        if more:
            run.resume()
        else:
            run.start(request("off", "on", rounds=6))
