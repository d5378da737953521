"""The worker as a process: endless candidates, noise on its pipe, children that it leaves. Bounded time, nothing left over."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine.local import LocalExecutor

from .candidates import HONEST, assert_unharmed, gate, open_worker, question

pytestmark = pytest.mark.torch_cpu


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


def worker_pid(executor: LocalExecutor) -> int:
    pid = executor._worker.pid
    assert pid is not None
    return pid


def running(marker: str) -> list[int]:
    """Live processes whose command holds the marker; a zombie has none."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def session(sid: int) -> list[int]:
    """Live processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                state, _, _, its_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(its_session) == sid and state != "Z":
                    found.append(int(entry.name))
    return found


def assert_gone(sid: int) -> None:
    """No process of the session is left; one that was killed a moment ago may take a moment to vanish."""
    limit = time.monotonic() + 5
    while session(sid) and time.monotonic() < limit:
        time.sleep(0.05)
    assert session(sid) == []


# --- candidates that never end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import time\n\ndef run(x):\n    while True:\n        time.sleep(1)\n",
        "while True:\n    pass\n",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\ndef run(x):\n    while True:\n        pass\n",
    ],
    ids=["b129_run", "b80_import", "deaf_to_sigterm"],
)
def test_b129_an_endless_candidate_is_ended_at_the_limit(executor: LocalExecutor, source: str) -> None:
    before = worker_pid(executor)
    outcome, reason = gate(executor, source)
    assert outcome == "timeout" and "8 s" in reason
    assert_unharmed(executor)
    assert worker_pid(executor) != before
    assert_gone(before)


# --- noise on the pipe ------------------------------------------------------------------------------------------------

NOISE = {
    "text": "print('garbage ' * 10); sys.stdout.flush()",
    "b_not_utf8": "sys.stdout.buffer.write(b'\\xff\\xfe\\x00' * 100); sys.stdout.flush()",
    "huge": "os.write(1, b'x' * (16 << 20)); os.write(2, b'y' * (16 << 20))",
    "a_length": "os.write(1, (8).to_bytes(8, 'big') + b'garbage!')",
    "closes_stdout": "os.close(1)",
    "reads_stdin": "assert os.read(0, 100) == b''",
}


@pytest.mark.parametrize("name", NOISE)
def test_what_a_candidate_prints_never_breaks_the_pipe(executor: LocalExecutor, name: str) -> None:
    source = f"import os, sys, torch\n\ndef run(x):\n    global DONE\n    if not DONE:\n        {NOISE[name]}\n    DONE = True\n"
    source += "    return torch.softmax(x, -1)\nDONE = False\n"
    assert gate(executor, source) == ("passed", "within limits")
    assert_unharmed(executor)


@pytest.mark.parametrize(
    "content",
    [
        "b'x'",
        "(1 << 62).to_bytes(8, 'big')",
        "(4).to_bytes(8, 'big') + b'\\xc1\\xc1\\xc1\\xc1'",
        "(100).to_bytes(8, 'big')",
    ],
    ids=["one byte", "huge length", "no message", "half a frame"],
)
def test_a_candidate_that_writes_into_the_reply_pipe_harms_only_itself(executor: LocalExecutor, content: str) -> None:
    """The pipe is not on stdout, but a process can write to any descriptor that it holds."""
    source = f"""
import os
import stat
import torch

for number in range(3, 64):
    try:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            os.write(number, {content})
    except OSError:
        pass

def run(x):
    while True:
        pass
"""
    assert gate(executor, source)[0] in ("timeout", "worker_lost", "run_error")
    assert_unharmed(executor)


# --- processes --------------------------------------------------------------------------------------------------------


def test_b80_what_a_candidate_starts_ends_with_its_worker(executor: LocalExecutor) -> None:
    """A forked child and a stub compiler that sleep for ever: the next candidate is measured, and nothing outlives the worker."""
    source = HONEST.replace(
        "import torch\n",
        "import os, subprocess, time, torch\n"
        "subprocess.Popen(['sleep', '98765'])\nif os.fork() == 0:\n    time.sleep(98765)\n    os._exit(0)\n",
    )
    assert gate(executor, source)[0] == "passed"
    assert_unharmed(executor)
    worker = worker_pid(executor)
    assert len(session(worker)) == 3
    executor._worker.kill()
    assert_gone(worker)


def test_a_worker_that_ends_while_its_child_holds_the_pipe_is_noticed(executor: LocalExecutor) -> None:
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(98766)\nos._exit(5)\n"
    before = worker_pid(executor)
    assert gate(executor, source)[0] in ("worker_lost", "timeout")
    assert_gone(before)
    assert_unharmed(executor)


def test_a_child_that_leaves_the_session_does_not_outlive_the_worker(executor: LocalExecutor) -> None:
    source = HONEST.replace(
        "import torch\n", "import subprocess, torch\nsubprocess.Popen(['sleep', '98767'], start_new_session=True)\n"
    )
    assert gate(executor, source)[0] == "passed"
    executor._worker.kill()
    left = running("sleep\x0098767")
    for pid in left:
        os.kill(pid, 9)
    assert left == []


def test_a_worker_ends_when_its_engine_does(executor: LocalExecutor) -> None:
    """The death of the engine closes the pipe, and that ends the worker."""
    worker, child = worker_pid(executor), executor._worker._child
    assert child is not None and child.stdin is not None and session(worker) == [worker]
    child.stdin.close()
    child.wait(timeout=10)
    assert_gone(worker)


def test_a_comparison_that_never_ends_is_a_fault_and_not_a_verdict(executor: LocalExecutor) -> None:
    endless = "def run(x):\n    while True:\n        pass\n"
    seen = executor.compare(question(), HONEST, endless, 2)
    assert (seen.status, seen.artifacts) == ("timeout", {})
    assert_unharmed(executor)


@pytest.mark.parametrize("last", ["raise ValueError(1)", "import os; os._exit(3)"], ids=["raises", "exits"])
def test_a_comparison_in_which_one_side_fails_is_a_fault(executor: LocalExecutor, last: str) -> None:
    seen = executor.compare(question(), HONEST, f"def run(x):\n    {last}\n", 2)
    assert seen.status in ("request_failed", "worker_lost") and seen.artifacts == {}
    assert_unharmed(executor)
