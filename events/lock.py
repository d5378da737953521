"""The single-writer lock of a ledger: a locked file beside it. Never outlives the process that holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from pathlib import Path

from .errors import BadInput, ConcurrencyConflict, ToolFailed
from .files import beside

# A link in its place is not followed, and a pipe is not waited for: neither is a lock file.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class WriterLock:
    """Held from construction to `release`; the operating system frees it when the process ends, however it ends."""

    def __init__(self, ledger: Path) -> None:
        self.path = beside(ledger, ".lock")
        self.released = False
        while True:
            self._fd = self._acquire(ledger)
            if self._is_current():
                break
            os.close(self._fd)  # the last holder removed this very file between our open and our lock
        self._sign()

    def release(self) -> None:
        """Remove the file while it is still locked, so that nobody locks a file that is gone; then free it."""
        if self._is_current():
            self.path.unlink()
        os.close(self._fd)
        self.released = True

    def _acquire(self, ledger: Path) -> int:
        try:
            fd = os.open(self.path, _FLAGS, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._not_ours() from error
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full(error) from error
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

    def _sign(self) -> None:
        """Write the process id, over that of a writer that died and over nothing else."""
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or not _is_signature(os.pread(self._fd, 21, 0)):
            os.close(self._fd)
            raise self._not_ours()
        try:
            os.truncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            self.release()
            raise self._full(error) from error

    def _not_ours(self) -> BadInput:
        return BadInput(
            f"{self.path} is where a writer keeps its lock, and is something else: expected no file, or one that holds a "
            "process id. It was left as it is; move it away"
        )

    def _full(self, error: OSError) -> ToolFailed:
        return ToolFailed(
            f"{self.path} cannot be written: {error.strerror}; make room on the disk. Nothing was changed"
        )

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.lstat(self.path))
        except FileNotFoundError:
            return False


def _is_signature(content: bytes) -> bool:
    return re.fullmatch(rb"[0-9]{0,19}\n?", content) is not None
