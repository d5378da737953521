"""`gpusolver sanitize` around a made-up compute-sanitizer: what it says is told, and what it cannot tell is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpusolver.__main__ import main
from gpusolver.engine.sanitize import sanitized
from gpusolver.engine.worker.protocol import Subject
from gpusolver.events.errors import BadInput, ToolFailed
from gpusolver.problems.contract import load

PROBLEM = load("kb_softmax")
SUBJECT = Subject(reference=PROBLEM.reference, shape=PROBLEM.small, seed=1)
KERNEL = "import torch\n\ndef run(x):\n    return torch.softmax(x, -1)\n"
# Takes the options apart as the real one does, does what it was made to do, and writes its log at the end.
TOOL = """#!{python}
import subprocess, sys
log = next(word for word in sys.argv if word.startswith("--log-file=")).split("=", 1)[1]
asked = next(word for word in sys.argv if word.startswith("--tool=")).split("=", 1)[1]
program = sys.argv[next(i for i in range(1, len(sys.argv)) if not sys.argv[i].startswith("--")):]
code = 0
{deed}
open(log, "w").write({log!r}.replace("TOOL", asked))
sys.exit(code)
"""
RUNS, SAYS = "code = subprocess.run(program).returncode", "print('drawn: 6 calls')"
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
ERRORS = "========= Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 3 errors\n"
HAZARDS = "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def install(folder: Path, log: str, deed: str = SAYS) -> None:
    path = folder / "compute-sanitizer"
    path.write_text(TOOL.format(python=sys.executable, deed=deed, log=log))
    path.chmod(0o755)


def invoke(folder: Path, *words: str) -> Result:
    words = ("sanitize", str(folder / "kernel.py"), PROBLEM.name, "--small", *words)
    return CliRunner().invoke(main, words, terminal_width=400)


def test_nothing_found(folder: Path) -> None:
    install(folder, CLEAN)
    done = invoke(folder)
    assert (done.exit_code, done.output) == (0, "memcheck: nothing found in 6 calls\n")


def test_errors_are_shown_with_the_tools_own_words(folder: Path) -> None:
    install(folder, ERRORS, "code = 86")
    done = invoke(folder)
    assert done.exit_code == 1
    assert "Invalid __global__ write" in done.output and "memcheck: 3 found" in done.output


def test_every_tool_that_is_asked_for_runs_once(folder: Path) -> None:
    install(folder, HAZARDS + "ran TOOL\n", SAYS + "\ncode = 86")
    done = invoke(folder, "--tool", "racecheck", "--tool", "initcheck", "--tool", "racecheck")
    assert done.exit_code == 1 and done.output.count("ran racecheck") == done.output.count("ran initcheck") == 1
    assert "racecheck: 2 found in 6 calls" in done.output


def test_without_the_tool_it_says_where_it_comes_from(folder: Path) -> None:
    done = invoke(folder)
    assert done.exit_code == 1 and "compute-sanitizer: expected it on PATH, found none" in done.output


@pytest.mark.parametrize("deed", ["code = 1", "os = __import__('os'); os.kill(os.getpid(), 9)"], ids=["ends", "dies"])
def test_a_tool_without_a_summary_tells_nothing(folder: Path, deed: str) -> None:
    install(folder, "========= Error: Target application terminated before first instrumented API call\n", deed)
    done = invoke(folder)
    assert done.exit_code == 1 and "expected a summary, found none" in done.output


def test_a_summary_that_the_source_printed_is_none_of_the_tools(folder: Path) -> None:
    install(folder, "", f"print({CLEAN!r}); {SAYS}")
    assert "expected a summary, found none" in invoke(folder).output


def test_a_source_that_does_not_get_through_its_draws_is_not_clean(folder: Path) -> None:
    install(folder, CLEAN, "print('NameError: name'); code = 1")
    done = invoke(folder)
    assert done.exit_code == 1 and "expected to run on every draw, found exit 1" in done.output
    assert "NameError: name" in done.output


def test_a_tool_that_does_not_end_is_ended(folder: Path) -> None:
    install(folder, CLEAN, "import time; time.sleep(600)")
    with pytest.raises(ToolFailed, match="expected an end within"):
        sanitized(KERNEL, SUBJECT, "memcheck", {"PATH": str(folder)}, 0.5)


def test_a_kernel_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "kernel.py").unlink()
    assert "kernel.py: expected a Python file" in invoke(folder).output


@pytest.mark.torch_cpu
def test_the_program_runs_every_draw_of_the_gate(tmp_path: Path) -> None:
    install(tmp_path, CLEAN, RUNS)
    environment = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GPUSOLVER_WORKER_DEVICE": "cpu",
        "GPUSOLVER_WORKER_FOLDER": str(tmp_path),
    }  # fmt: skip
    seen = sanitized(KERNEL, SUBJECT, "memcheck", environment, 120)
    assert (seen.found, seen.calls) == (0, 6)  # two plain draws and four more kinds
    with pytest.raises(BadInput, match="only three rows"):
        sanitized(
            KERNEL.replace("return", "assert x.shape[0] == 3, 'only three rows'; return"),
            SUBJECT,
            "memcheck",
            environment,
            120,
        )


@pytest.mark.gpu
def test_a_write_past_the_end_is_found() -> None:
    source = """
import torch, triton, triton.language as tl

@triton.jit
def past(out, n):
    tl.store(out + n + (1 << 20), 1.0)

def run(x):
    out = torch.softmax(x, -1)
    past[(1,)](out, out.numel())
    return out
"""
    environment = {**os.environ, "GPUSOLVER_WORKER_DEVICE": "cuda"}
    assert sanitized(source, SUBJECT, "memcheck", environment, 300).found > 0
    assert sanitized(KERNEL, SUBJECT, "memcheck", environment, 300).found == 0
