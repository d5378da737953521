"""The worker as a process: endless candidates, noise on its socket, children that it leaves. Bounded time, nothing left over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine.local import LocalExecutor

from .candidates import HONEST, assert_unharmed, gate, open_worker, question
from .processes import assert_gone, assert_none_runs, below, running, session, soon

pytestmark = pytest.mark.torch_cpu


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


def worker_pid(executor: LocalExecutor) -> int:
    pid = executor.worker_pid
    assert pid is not None
    return pid


def telling(source: str, path: Path) -> str:
    """The source, which writes down first what process it runs in."""
    return f"import os, pathlib\npathlib.Path({str(path)!r}).write_text(str(os.getpid()))\n{source}"


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
def test_b129_an_endless_candidate_is_ended_at_the_limit(executor: LocalExecutor, source: str, tmp_path: Path) -> None:
    outcome, reason = gate(executor, telling(source, tmp_path / "pid"))
    assert outcome == "timeout" and "8 s" in reason
    assert executor.worker_pid is None
    assert_gone(int((tmp_path / "pid").read_text()))
    assert_unharmed(executor)


def test_every_candidate_has_a_process_of_its_own(executor: LocalExecutor) -> None:
    """The one before ends with all its memory; the same source again meets the process that it ran in."""
    first, second = HONEST, HONEST + "\n# another\n"
    pids = []
    for source in (first, first, second, first):
        assert gate(executor, source)[0] == "passed"
        pids.append(worker_pid(executor))
    assert pids[0] == pids[1] and len(set(pids)) == 3
    assert_gone(pids[0])
    assert_gone(pids[2])


# --- noise on the socket ------------------------------------------------------------------------------------------------

NOISE = {
    "text": "print('garbage ' * 10); sys.stdout.flush()",
    "b_not_utf8": "sys.stdout.buffer.write(b'\\xff\\xfe\\x00' * 100); sys.stdout.flush()",
    "huge": "os.write(1, b'x' * (16 << 20)); os.write(2, b'y' * (16 << 20))",
    "a_length": "os.write(1, (8).to_bytes(8, 'big') + b'garbage!')",
    "closes_stdout": "os.close(1)",
    "reads_stdin": "assert os.read(0, 100) == b''",
}


@pytest.mark.parametrize("name", NOISE)
def test_what_a_candidate_prints_never_breaks_the_talk(executor: LocalExecutor, name: str) -> None:
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
def test_a_candidate_that_writes_into_the_reply_socket_harms_only_itself(executor: LocalExecutor, content: str) -> None:
    """The socket is not on stdout, but a process can write to any descriptor that it holds."""
    source = f"""
import os
import stat
import torch

for number in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
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
    """A forked child and a stub compiler that sleep for ever: the next candidate has another process, and neither is left."""
    source = HONEST.replace(
        "import torch\n",
        "import os, subprocess, time, torch\n"
        "subprocess.Popen(['sleep', '98765'])\nif os.fork() == 0:\n    time.sleep(98765)\n    os._exit(0)\n",
    )
    assert gate(executor, source)[0] == "passed"
    worker = worker_pid(executor)
    assert len(session(worker)) == 3 and running("sleep\x0098765")
    assert_unharmed(executor)
    assert worker_pid(executor) != worker
    assert_gone(worker)
    assert_none_runs("sleep\x0098765")


def test_a_worker_that_ends_while_its_child_holds_the_socket_is_noticed(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    source = telling("import time\nif os.fork() == 0:\n    time.sleep(98766)\nos._exit(5)\n", tmp_path / "pid")
    assert gate(executor, source)[0] in ("worker_lost", "timeout")
    assert_gone(int((tmp_path / "pid").read_text()))
    assert_unharmed(executor)


def test_a_child_that_leaves_the_session_does_not_outlive_the_worker(executor: LocalExecutor) -> None:
    source = HONEST.replace(
        "import torch\n", "import subprocess, torch\nsubprocess.Popen(['sleep', '98767'], start_new_session=True)\n"
    )
    assert gate(executor, source)[0] == "passed"
    assert running("sleep\x0098767")
    assert_unharmed(executor)
    assert_none_runs("sleep\x0098767")


def test_a_worker_whose_socket_closes_ends(executor: LocalExecutor) -> None:
    """The death of the engine closes the socket, and that ends the worker."""
    assert_unharmed(executor)
    worker = worker_pid(executor)
    assert session(worker) == [worker]
    arm = executor._bout.arms._worker
    assert arm is not None
    arm._socket.close()
    assert_gone(worker)


def test_server_referee_worker_and_spare_are_all_that_runs(executor: LocalExecutor) -> None:
    """Whatever ran before: four processes, and none after the end."""
    for source in (HONEST, "import os\nos._exit(3)\n", HONEST + "\n# again\n"):
        gate(executor, source)
    assert soon(lambda: len(below(os.getpid())) == 4), below(os.getpid())
    executor._bout.close()
    assert below(os.getpid()) == set()


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


def forks(where: str) -> str:
    """An honest source that forks once in `where` and lets both processes go on, so that two answer on one socket."""
    head = "import os\nimport torch\n\nDONE = []\n\ndef once():\n    if not DONE:\n        DONE.append(1)\n        os.fork()\n\n"
    return head + ("once()\n" if where == "import" else "") + (
        f"def run(x):\n    {'once()' if where == 'call' else ''}\n    return torch.softmax(x, -1)\n"
    )  # fmt: skip


@pytest.mark.parametrize("where", ["import", "call"])
def test_two_processes_that_answer_on_one_socket_are_a_lost_worker(executor: LocalExecutor, where: str) -> None:
    """The second answer must not be taken for that of the next question: a pair would be judged by a gate's rows."""
    source = forks(where)
    outcomes = {gate(executor, source)[0]}
    timed = executor.compare(question(), source, source, 2)
    # Two processes that spoil one another's outputs may also be found wrong.
    assert outcomes <= {"worker_lost", "passed", "run_error", "timeout", "wrong_later"}
    assert timed.status in ("ok", "worker_lost")
    assert_unharmed(executor)


def test_an_answer_of_another_shape_is_a_lost_worker(executor: LocalExecutor) -> None:
    """A candidate that finds the worker's own encoder and lets every artifact say `{}`."""
    source = (
        "import sys, msgspec, torch\n\ndef run(x):\n"
        "    msgspec.json.encode = lambda *a, **k: b'{}'\n    return torch.softmax(x, -1)\n"
    )
    assert gate(executor, source)[0] == "worker_lost"
    assert_unharmed(executor)
