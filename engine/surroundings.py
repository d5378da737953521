"""What a machine offers, asked from outside: files, versions, tools with a time limit. Loads no GPU library and changes no setting."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

_LONGEST = 20_000

# Makes a ledger where a run would, as a run would, and takes it away again.
_TRIAL = """
import os, sys, tempfile
from gpusolver.events.model import RunStopped
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
with tempfile.TemporaryDirectory(prefix=".gpusolver-doctor-", dir=sys.argv[1]) as folder:
    path = os.path.join(folder, "trial.db")
    with LedgerWriter(path) as ledger:
        ledger.append("run1", 0, [RunStopped(run="run1", cell=None, reason="trial", rule=None)])
    with LedgerReader(path) as reader:
        assert reader.head()[0] == 1
"""


class Answer(msgspec.Struct, frozen=True):
    """What a tool said; `status` is its exit status, None where it did not end in time."""

    status: int | None
    text: str


class Surroundings:
    """This machine, seen from `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        try:
            self.folder = Path.cwd() if folder is None else folder
        except OSError:  # the folder that the shell stands in was removed
            self.folder = Path(".")

    def python(self) -> tuple[int, int, int]:
        """The version of this Python."""
        return sys.version_info[0], sys.version_info[1], sys.version_info[2]

    def sqlite(self) -> tuple[int, ...]:
        """The version of the SQLite that this Python uses."""
        return sqlite3.sqlite_version_info

    def package(self, name: str) -> str | None:
        """An installed distribution's version, by its metadata alone."""
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None

    def read(self, path: str) -> str | None:
        """A text file of the system; None where there is none, or it may not be read."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(_LONGEST * 10)
        except OSError:
            return None

    def tool(self, name: str) -> str | None:
        """The path of a program."""
        return shutil.which(name)

    def ask(self, command: Sequence[str], limit_s: float) -> Answer:
        """Run a program for at most `limit_s` seconds."""
        root = str(Path(str(files("gpusolver"))).parent)
        places = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=limit_s,
                check=False,
                env={**os.environ, "PYTHONPATH": places},
            )
        except subprocess.TimeoutExpired:
            return Answer(None, f"no answer within {limit_s:g} s")
        except OSError as error:
            return Answer(127, f"{error.strerror}")
        return Answer(done.returncode, done.stdout[-_LONGEST:].decode("utf-8", "replace"))

    def ask_python(self, script: str, limit_s: float, *arguments: str) -> Answer:
        """Run a script in a fresh Python, so that what it imports can neither hang nor kill this process."""
        return self.ask([sys.executable, "-c", script, *arguments], limit_s)

    def trial(self) -> Answer:
        """Make, write, close and read a ledger in a folder of its own within `folder`, then remove it."""
        return self.ask_python(_TRIAL, 30, str(self.folder))

    def free_bytes(self) -> int:
        """Room on the disk of `folder`."""
        return shutil.disk_usage(self.folder).free

    def cupti(self) -> list[str]:
        """Copies of CUPTI 13 that the worker would look at: those of the wheels."""
        places = (Path(entry or ".", "nvidia") for entry in sys.path)
        return [str(path) for place in places for path in sorted(place.glob("*/lib/libcupti.so.13"))]
