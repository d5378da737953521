"""What the importer asks of a user's file and what it is told, by a child process with a time limit. Never imports torch."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Literal

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
    """The sources of the problem by file, and what problem.toml states of it. `notes` say what was changed in the user's text."""

    files: dict[str, str]
    dtype: str
    output: tuple[int, ...]
    flops: int
    min_bytes: int
    family: str
    limits: dict[str, Limits]
    seen: Seen
    notes: tuple[str, ...] = ()


class _Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    refused: str


def probe(asked: Asked, limit_s: float = LIMIT_S) -> Answer:
    """Ask in a process of its own. BadInput with the file's fault; ToolFailed where the process itself failed."""
    with tempfile.TemporaryDirectory(prefix="gpusolver-import-") as folder:
        question, reply = pathlib.Path(folder, "asked.json"), pathlib.Path(folder, "answer.json")
        question.write_bytes(msgspec.json.encode(asked))
        environment = {**os.environ, "PYTHONPATH": _root(), "PYTHONDONTWRITEBYTECODE": "1"}
        if asked.device == "cpu":
            environment["TRITON_INTERPRET"] = "1"
        command = [sys.executable, "-m", "gpusolver.problems.probe", str(question), str(reply)]
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, env=environment, timeout=limit_s, cwd=folder
            )
        except subprocess.TimeoutExpired:
            raise BadInput(
                f"expected one call to end, found it running after {limit_s:.0f} s. Make it smaller."
            ) from None
        if not reply.exists():
            lacking = "No module named 'torch'" in done.stderr
            hint = "Install the extra gpu (or torch-cpu). " if lacking else ""
            raise ToolFailed(f"{hint}The importer's process ended with {done.returncode}: {done.stderr[-800:]}")
        try:
            found = msgspec.json.decode(reply.read_bytes(), type=dict)
        except msgspec.DecodeError as error:
            raise ToolFailed(f"the importer's answer cannot be read: {error}") from None
    if "refused" in found:
        raise BadInput(msgspec.convert(found, _Refused).refused)
    return msgspec.convert(found, Answer)


def _root() -> str:
    root = str(pathlib.Path(package_path[0]).parent)
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
