"""Kills processes by the mark in their environment, in whatever session they hide. Reads /proc and starts nothing."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import time

_LIMIT_S = 5.0


def kill_marked(mark: str) -> None:
    """Kill every process whose environment names the worker's folder `mark`: a child in a session of its own is in no group of ours."""
    deadline = time.monotonic() + _LIMIT_S
    while (left := marked(mark)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)  # until they are gone, and what they may have started meanwhile


def marked(mark: str) -> list[int]:
    """Process ids with the mark."""
    wanted, found = f"GPUSOLVER_WORKER_FOLDER={mark}".encode(), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
