"""What compilers left on disk for one source, kept in memory and laid out only before a worker that runs it. Never runs, parses or links to it.

Compilers load from their caches what they find there: machine code, and pickles that are run. All workers see the same
folders (paths inside the entries stay true), so the folders are emptied between workers of different sources.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import stat
from collections.abc import Iterable, Iterator

FOLDERS = {
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
}
"""Environment variables of compilers, and the folder that each names."""
_MOST_FILES, _MOST_BYTES, _MOST_BYTES_IN_ALL = 4096, 64 << 20, 512 << 20

Files = dict[str, bytes]


class Caches:
    """The cache folders in one worker's folder. What is there at the start, before any candidate, is laid out for everybody."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._start = self._read() or {}
        self._kept: dict[str, Files] = {}

    def keep(self, source: str) -> None:
        """Keep what lies there for a source that ran alone since it was laid out. More than the limits is not kept."""
        if source in self._kept or (found := self._read()) is None:
            return
        self._kept[source] = {name: content for name, content in found.items() if self._start.get(name) != content}
        while sum(map(_size, self._kept.values())) > _MOST_BYTES_IN_ALL:
            del self._kept[next(iter(self._kept))]  # the oldest

    def empty(self) -> None:
        """Remove all that lies there and lay out the start: no worker of a candidate lives now."""
        for name in FOLDERS.values():
            path = self._folder / name
            with contextlib.suppress(OSError):
                path.unlink()  # a link or a file that a candidate put there
            shutil.rmtree(path, ignore_errors=True)
        self._write(self._start)

    def lay(self, sources: Iterable[str]) -> None:
        """Lay out what was kept for these sources, over whatever lies there under the same names."""
        for source in sources:
            self._write(self._kept.get(source, {}))

    def _read(self) -> Files | None:
        """Content by path below the folder; None where it is more than the limits."""
        found: Files = {}
        size = 0
        for path in self._regular():
            content = _content(path)
            if content is None:
                continue
            size += len(content)
            if len(found) >= _MOST_FILES or size > _MOST_BYTES:
                return None
            found[path.relative_to(self._folder).as_posix()] = content
        return found

    def _regular(self) -> Iterator[pathlib.Path]:
        for name in FOLDERS.values():
            if (self._folder / name).is_symlink():
                continue
            for base, _, files in os.walk(self._folder / name):  # follows no links
                yield from (pathlib.Path(base, file) for file in files)

    def _write(self, files: Files) -> None:
        for name, content in files.items():
            path = self._folder / name
            with contextlib.suppress(OSError):  # no cache is no harm
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(content)
                path.chmod(0o700)


def _content(path: pathlib.Path) -> bytes | None:
    """A regular file's bytes, or one byte more than is kept; None of anything else: a pipe would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as opened:
        return opened.read(_MOST_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _size(files: Files) -> int:
    return sum(map(len, files.values()))
