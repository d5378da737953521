"""The single-writer lock of a ledger: a locked file beside it. Never outlives the process that holds it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import BadInput, ConcurrencyConflict


class WriterLock:
    """Held from construction to `release`; the operating system frees it when the process ends, however it ends."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + ".lock")
        self.released = False
        while True:
            self._fd = self._acquire(ledger)
            if self._is_current():
                break
            os.close(self._fd)  # the last holder removed this very file between our open and our lock
        os.truncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Remove the file while it is still locked, so that nobody locks a file that is gone; then free it."""
        if self._is_current():
            self.path.unlink()
        os.close(self._fd)
        self.released = True

    def _acquire(self, ledger: Path) -> int:
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BadInput(
                f"{self.path} cannot be made: {error.strerror}; name a ledger in a folder you may write to"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise ConcurrencyConflict(
                f"{ledger} is being written by {f'process {holder}' if holder else 'another process'}: a ledger has one "
                "writer at a time; wait for it, or name another file. Nothing was written"
            ) from error
        except OSError as error:
            os.close(fd)
            raise BadInput(
                f"{self.path} cannot be locked: {error.strerror}; keep the ledger on a local disk"
            ) from error
        return fd

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            return False
