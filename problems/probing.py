"""What the importer asks of a user's file and what it is told, by a child process with a time limit. Never imports torch."""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
from typing import Literal, Self

import msgspec

from .. import __path__ as package_path
from ..events.errors import BadInput, ToolFailed
from ..events.model import Limits
from .limits import Seen

LIMIT_S = 300.0
Form = Literal["module", "functions"]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What one call may take: bytes of inputs, state and answer; bytes of everything that is written on the way; FLOP of its products."""

    held: int
    moved: int
    flops: int


# The stand-in calls a module hundreds of times, in float64 too, on a few cores. A card holds some twelve copies at once (fp32 and float64).
CPU = Budget(held=2 << 20, moved=16 << 20, flops=50_000_000)


def on_card(memory: int) -> Budget:
    """The budget of a card with so many bytes of memory."""
    return Budget(held=memory // 32, moved=memory // 4, flops=20_000_000_000_000)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text, which contract it follows, and where it is to be tried."""

    text: str
    form: Form
    device: str
    budget: Budget


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the problem by file, and what problem.toml states of it. `notes` say what was changed in the user's text.

    `hidden`: its gate lets a lower precision than the contract's through.
    """

    files: dict[str, str]
    dtype: str
    output: tuple[int, ...]
    flops: int
    min_bytes: int
    family: str
    limits: dict[str, Limits]
    seen: Seen
    mixed_limits: dict[str, Limits] = {}
    mixed_inputs: tuple[int, ...] = ()
    kind_limits: dict[str, dict[str, Limits]] = {}
    hidden: bool = False
    notes: tuple[str, ...] = ()


class _Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    refused: str


class Prober:
    """A process that has torch imported and asks each file in a fork of its own; a lost one is replaced by the next question."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._folder = tempfile.TemporaryDirectory(prefix="gpusolver-import-", ignore_cleanup_errors=True)
        self._log = pathlib.Path(self._folder.name, "log")
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove its folder."""
        self._end()
        self._folder.cleanup()

    def probe(self, text: str, form: Form, budget: Budget, limit_s: float = LIMIT_S) -> Answer:
        """Ask about one file. BadInput with the file's fault; ToolFailed where the process itself failed."""
        asked = Asked(text=text, form=form, device=self._device, budget=budget)
        question, reply = (pathlib.Path(self._folder.name, f"{name}.json") for name in ("asked", "answer"))
        question.write_bytes(msgspec.json.encode(asked))
        reply.unlink(missing_ok=True)
        self._ask(f"{question}\t{reply}\n", limit_s)
        if not reply.exists():
            said = self._log.read_text(errors="replace")[-800:]
            lacking = "No module named 'torch'" in said
            hint = "Install the extra gpu (or torch-cpu). " if lacking else ""
            raise ToolFailed(f"{hint}The importer's process ended without an answer: {said}")
        try:
            found = msgspec.json.decode(reply.read_bytes(), type=dict)
        except msgspec.DecodeError as error:
            raise ToolFailed(f"the importer's answer cannot be read: {error}") from None
        if "refused" in found:
            raise BadInput(msgspec.convert(found, _Refused).refused)
        return msgspec.convert(found, Answer)

    def _ask(self, line: str, limit_s: float) -> None:
        """Return once the fork has ended, however it did. BadInput where that takes too long."""
        server = self._started()
        assert server.stdin is not None and server.stdout is not None
        with contextlib.suppress(OSError):  # one that has ended shows as no answer
            server.stdin.write(line)
            server.stdin.flush()
        if not select.select([server.stdout], [], [], limit_s)[0]:
            self._end()
            raise BadInput(f"expected one call to end, found it running after {limit_s:.0f} s. Make it smaller.")
        if not server.stdout.readline():
            self._end()

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            environment = {**os.environ, "PYTHONPATH": _root(), "PYTHONDONTWRITEBYTECODE": "1"}
            if self._device == "cpu":
                environment["TRITON_INTERPRET"] = "1"
            with self._log.open("w") as log:
                self._server = subprocess.Popen(
                    [sys.executable, "-m", "gpusolver.problems.probe"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=environment,
                    cwd=self._folder.name,
                    start_new_session=True,
                )
        return self._server

    def _end(self) -> None:
        """End the process and whatever the files that it asked have started."""
        if self._server is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._server.pid, signal.SIGKILL)
            self._server.communicate()
            self._server = None


def _root() -> str:
    root = str(pathlib.Path(package_path[0]).parent)
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
