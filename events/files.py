"""A ledger's name on disk and what lies beside it. Never changes anything there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import UnreadableLedger


def real(path: str | os.PathLike[str]) -> Path:
    """The absolute path behind symbolic links: SQLite keeps -wal, and a writer its lock, beside the file itself."""
    return Path(os.path.realpath(path))


def beside(path: Path, suffix: str) -> Path:
    """The path of the file that SQLite or a writer keeps beside the ledger."""
    return path.with_name(path.name + suffix)


def size(path: Path) -> int:
    """Bytes of the file; 0 for one that does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Places:
    """Which files some names stand for, so that a file removed, renamed or replaced behind one is noticed.

    One that is not there yet is taken up at the first look.
    """

    def __init__(self, *paths: Path) -> None:
        self._seen = {str(path): _identity(str(path)) for path in paths}

    def moved(self, path: Path) -> bool:
        """Whether `path` stands for another file than at first, or for none."""
        return _identity(str(path)) != self._seen[str(path)]

    def first_moved(self) -> str | None:
        """The first of the paths that stands for another file than at first, or for none; a stat for each."""
        for path, seen in self._seen.items():
            now = _identity(path)
            if now is None or seen not in (None, now):
                return path
            self._seen[path] = now
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """(device, inode): the same for a file under any name; None for no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def not_a_file(found: os.stat_result) -> str | None:
    """What it is in place of a regular file, in words; opening a pipe or a device would wait forever."""
    if stat.S_ISREG(found.st_mode):
        return None
    return "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"


def in_wal_mode(path: Path) -> bool:
    """Whether the file's header says that newer events may lie in a -wal; UnreadableLedger if it is no SQLite file."""
    return _header(path)[18:20] == b"\2\2"


def refuse_stray_wal(path: Path) -> None:
    """Raise UnreadableLedger where a -wal lies beside a file that was closed whole, or is empty.

    SQLite applies any -wal by its name alone: one of another or of an older ledger would take back what is in the file.
    """
    wal = beside(path, "-wal")
    # In this order: a writer marks the header before it writes a -wal, and removes that before it marks the header again.
    if size(wal) and not (size(path) and in_wal_mode(path)) and size(wal):
        raise UnreadableLedger(
            f"{wal} does not belong to {path}, whose header says that nothing lies beside it: the -wal of another ledger, "
            f"or an old one. Nothing was changed; move {wal.name} away (and keep it, until you know whose it is)"
        )


def _header(path: Path) -> bytes:
    """The first 100 bytes of an SQLite file."""
    try:
        if (kind := not_a_file(path.stat())) is not None:
            raise UnreadableLedger(f"{path} is {kind}; expected a ledger file")
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise UnreadableLedger(f"{path} cannot be read: {error.strerror}; expected a ledger file") from error
    if not header.startswith(b"SQLite format 3\0"):
        raise UnreadableLedger(f"{path} is not a ledger: it is no SQLite database ({len(header) or 'no'} bytes read)")
    return header
