"""Processes as /proc tells of them, for tests of what outlives whom. Starts none, and ends none but strays of a failed test."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path


def _each() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def running(words: str) -> list[int]:
    """Live processes whose command holds the words, its arguments parted by NUL; a zombie has none."""
    found = []
    for entry in _each():
        with contextlib.suppress(OSError):
            if words.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def with_mark(folder: str) -> list[int]:
    """Live processes that were started with a worker's folder in their environment."""
    found = []
    for entry in _each():
        with contextlib.suppress(OSError):
            if f"GPUSOLVER_WORKER_FOLDER={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _stat(pid: int) -> tuple[str, int, int]:
    """State, parent and session."""
    state, parent, _, its_session = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
    return state, int(parent), int(its_session)


def session(sid: int) -> list[int]:
    """Live processes of a session."""
    found = []
    for entry in _each():
        with contextlib.suppress(OSError):
            state, _, its_session = _stat(int(entry.name))
            if its_session == sid and state != "Z":
                found.append(int(entry.name))
    return found


def below(pid: int) -> set[int]:
    """Live children of a process, theirs, and so on."""
    parents: dict[int, int] = {}
    for entry in _each():
        with contextlib.suppress(OSError):
            state, parent, _ = _stat(int(entry.name))
            if state != "Z":
                parents[int(entry.name)] = parent
    found, last = set[int](), {pid}
    while last:
        last = {child for child, parent in parents.items() if parent in last}
        found |= last
    return found


def soon(true: Callable[[], bool], limit_s: float = 5.0) -> bool:
    """Whether it comes true within the limit: a process that was killed may take a moment to vanish."""
    limit = time.monotonic() + limit_s
    while not true() and time.monotonic() < limit:
        time.sleep(0.02)
    return true()


def assert_gone(sid: int) -> None:
    """No process of the session is left."""
    assert soon(lambda: session(sid) == []), session(sid)


def assert_none_runs(words: str) -> None:
    """No process with these words is left; one that is there still is ended, for the sake of the tests after this one."""
    gone = soon(lambda: running(words) == [])
    left = running(words)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, 9)
    assert gone, left
