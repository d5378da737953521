"""A source's gate draws under NVIDIA's compute-sanitizer, as a process of its own. Says what the tool found; decides no gate."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, get_args

import msgspec

from ..events.errors import BadInput, ToolFailed
from .refereed import PLAIN_DRAWS, PROPERTIES
from .worker.protocol import Asked, Drawn, Subject

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
_NAME, _FOUND = "compute-sanitizer", 86  # the exit code that we ask for where the tool finds something
_CALLS = re.compile(r"^drawn: (\d+) calls$", re.MULTILINE)
# The last line of each tool; racecheck counts hazards, of which warnings are a part.
_SUMMARY = re.compile(
    r"^=+ (?:ERROR SUMMARY: (?P<errors>\d+) error|RACECHECK SUMMARY: (?P<hazards>\d+) hazard)", re.MULTILINE
)


class Sanitized(NamedTuple):
    """How many errors or hazards a tool found in so many calls (0 where the source did not get through them), and its log."""

    tool: Tool
    calls: int
    found: int
    text: str


def command(tool: Tool, program: list[str], path: str, log: Path) -> list[str]:
    """The command line of compute-sanitizer at `path` around a program; what the tool itself says goes to `log`."""
    return [path, f"--tool={tool}", f"--log-file={log}", f"--error-exitcode={_FOUND}", "--print-limit=20", *program]


def sanitized(source: str, subject: Subject, tool: Tool, environment: Mapping[str, str], limit_s: float) -> Sanitized:
    """Run the source's draws under the tool. BadInput where the source itself fails, ToolFailed where the tool cannot tell."""
    path = shutil.which(_NAME, path=environment.get("PATH"))
    if path is None:
        raise ToolFailed(f"{_NAME}: expected it on PATH, found none. It comes with the CUDA toolkit (its folder bin).")
    # Memory that torch keeps and hands out in parts hides a write past the end of a tensor.
    environment = {**environment, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    with TemporaryDirectory(prefix="gpusolver-sanitize-") as folder:
        asked, log, printed = (Path(folder, name) for name in ("drawn", "log", "printed"))
        asked.write_bytes(msgspec.msgpack.encode(Drawn(source=source, subject=subject, draws=_draws())))
        program = [sys.executable, "-m", "gpusolver.engine.worker.drawn", str(asked)]
        code = _run(command(tool, program, path, log), environment, limit_s, printed)
        return _read(tool, code, _text(log), _text(printed))


def _draws() -> tuple[Asked, ...]:
    """Those of the gate."""
    kinds = ("plain",) * PLAIN_DRAWS + PROPERTIES
    return tuple(Asked(index=index, kind=kind) for index, kind in enumerate(kinds))


def _run(argv: list[str], environment: Mapping[str, str], limit_s: float, printed: Path) -> int:
    with printed.open("wb") as sink:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment, start_new_session=True
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise ToolFailed(
                f"{_NAME}: expected an end within {limit_s:g} s, found none. Give --limit more, or --small for small sizes."
            ) from None
        finally:
            _end(process)


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole session: what the tool watches outlives it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _read(tool: Tool, code: int, log: str, printed: str) -> Sanitized:
    summary, calls = list(_SUMMARY.finditer(log)), _CALLS.search(printed)
    if not summary:
        raise ToolFailed(
            f"{_NAME} --tool={tool}: expected a summary, found none (exit {code}). {(log + printed)[-800:]}"
        )
    found = int(summary[-1]["errors"] or summary[-1]["hazards"])
    if found == 0 and (calls is None or code):
        raise BadInput(f"the source: expected to run on every draw, found exit {code}. {printed[-800:]}")
    return Sanitized(tool, int(calls[1]) if calls else 0, found, log)
