"""The fork server under candidates that kill, flood and leave children behind: one candidate's harm is its own, and nothing is left at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine.fork_client import ForkClient
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.worker.protocol import Arena, Gate, Hello, Reply, Staged
from gpusolver.engine.worker_process import WorkerProcess

from .candidates import HONEST, assert_unharmed, gate, open_worker, question
from .processes import assert_none_runs, below, running, soon, with_mark

pytestmark = pytest.mark.torch_cpu

LONGEST_FILE = 512 << 20
LONGEST_LOG = 16 << 20
NOWHERE = Staged(arena=Arena(kind="file", key="/nonexistent", size=0), draws=())


@pytest.fixture(scope="module")
def client() -> Iterator[ForkClient]:
    made = ForkClient("cpu")
    yield made
    made.close()


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


def imported(worker: WorkerProcess, source: str) -> Reply:
    """Have a worker import a source; nothing is staged to run it on."""
    return worker.ask(Gate(source=source + "\ndef run(x):\n    return x\n", staged=NOWHERE, repeats=0), 20.0)


def children(words: str) -> str:
    """A grandchild in a session of its own whose parent has ended, and a child's child that left by a double fork."""
    return f"""
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '{words}'], start_new_session=True)"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{words}"])
    os._exit(0)
os.wait()
"""


# --- what a worker leaves ---------------------------------------------------------------------------------------------


def test_orphans_in_sessions_of_their_own_die_with_their_worker(client: ForkClient) -> None:
    worker = WorkerProcess(client)
    assert imported(worker, children("98801")).status == "ok"
    assert soon(lambda: len(running("sleep\x0098801")) == 2)
    worker.kill()
    assert_none_runs("sleep\x0098801")


def test_an_orphan_without_any_environment_dies_too(client: ForkClient) -> None:
    """No mark to know it by: it is known by whose child it became."""
    worker = WorkerProcess(client)
    source = "import subprocess\nsubprocess.run(['env', '-i', 'setsid', '-f', 'sleep', '98802'])\n"
    assert imported(worker, source).status == "ok"
    assert soon(lambda: len(running("sleep\x0098802")) == 1)
    worker.kill()
    assert_none_runs("sleep\x0098802")


def test_a_second_worker_and_what_it_started_are_left_alone(client: ForkClient) -> None:
    one, other = WorkerProcess(client), WorkerProcess(client)
    assert imported(one, "import subprocess\nsubprocess.Popen(['sleep', '98803'])\n").status == "ok"
    assert imported(other, "import subprocess\nsubprocess.Popen(['sleep', '98804'])\n").status == "ok"
    one.kill()
    assert_none_runs("sleep\x0098803")
    assert soon(lambda: len(running("sleep\x0098804")) == 1) and other.ask(Hello(), 20.0).status == "ok"
    other.kill()
    assert_none_runs("sleep\x0098804")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import os\nos._exit(7)\n", 7),
        ("import os\nos.kill(os.getpid(), 9)\n", -9),
        ("import os\nos.abort()\n", -6),
        ("import sys, os\nsys.setrecursionlimit(1 << 30)\nos.kill(os.getpid(), 11)\n", -11),
    ],
    ids=["exit", "kill", "abort", "segfault"],
)
def test_the_end_of_a_worker_is_told(client: ForkClient, source: str, code: int) -> None:
    reply = imported(WorkerProcess(client), source)
    assert reply.status == "worker_lost" and f"exit {code})" in reply.text


def test_workers_come_and_go_without_a_trace_in_the_engine(client: ForkClient) -> None:
    """Fifty of them: no descriptor is kept, and no process but the server is left, not even a dead one."""
    WorkerProcess(client).kill()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(50):
        worker = WorkerProcess(client)
        assert worker.hello().status == "ok"
        worker.kill()
    assert sorted(os.listdir("/proc/self/fd")) == before
    server = client._server
    assert server is not None
    with_zombies = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert with_zombies == [] and below(os.getpid()) == {server.pid}


# --- what a candidate prints ------------------------------------------------------------------------------------------


def test_endless_output_fills_no_disk(client: ForkClient) -> None:
    """It ends in an error at the limit of a file's size; the next worker finds the log emptied."""
    flood = "import os\nblock = b'x' * (1 << 24)\nwhile True:\n    os.write(1, block)\n"
    worker = WorkerProcess(client)
    reply = imported(worker, flood)
    assert reply.status == "ok" and b"File too large" in reply.artifacts["rows"]
    assert client.log.stat().st_size <= LONGEST_FILE
    worker.kill()
    assert imported(WorkerProcess(client), "print('after the flood', flush=True)").status == "ok"
    assert client.log.stat().st_size <= LONGEST_LOG
    assert "after the flood" in client.log_tail()


def test_the_end_of_the_log_is_told_whatever_bytes_it_holds(client: ForkClient) -> None:
    source = "import os\nos.write(2, b'\\xff\\xfe last words')\nos._exit(1)\n"
    assert imported(WorkerProcess(client), source).text.endswith(" last words")


# --- attacks on the other processes -----------------------------------------------------------------------------------

KILLS_SERVER = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(30)\n"
# The server's other children: the referee and the spare.
KILLS_SIBLINGS = """
import os, pathlib, signal
parent = os.getppid()
for pid in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
    if int(pid) != os.getpid():
        os.kill(int(pid), signal.SIGKILL)
"""


def test_killing_the_server_costs_that_candidate_alone(executor: LocalExecutor) -> None:
    assert_unharmed(executor)
    assert gate(executor, KILLS_SERVER)[0] in ("worker_lost", "timeout")
    assert_unharmed(executor)


def test_killing_the_server_leaves_no_orphan(executor: LocalExecutor) -> None:
    assert gate(executor, children("98805") + KILLS_SERVER)[0] in ("worker_lost", "timeout")
    assert_unharmed(executor)
    assert_none_runs("sleep\x0098805")


def test_killing_referee_and_spare_never_ends_in_a_pass_and_harms_nobody_after(executor: LocalExecutor) -> None:
    assert_unharmed(executor)
    seen = executor.gate(question(), HONEST + KILLS_SIBLINGS)
    assert seen.status == "request_failed" and "referee" in seen.text
    assert_unharmed(executor)


def test_stopping_the_server_costs_no_more_than_the_limits(executor: LocalExecutor) -> None:
    """A stopped server answers nothing: it is given up and replaced."""
    source = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos._exit(1)\n"
    assert gate(executor, source)[0] in ("worker_lost", "timeout")
    assert_unharmed(executor)


STOPS_SIBLINGS = KILLS_SIBLINGS.replace("SIGKILL", "SIGSTOP")


def test_stopping_referee_and_spare_holds_nobody_up(executor: LocalExecutor) -> None:
    """They go on when they are asked next."""
    assert_unharmed(executor)
    assert gate(executor, HONEST + STOPS_SIBLINGS) == ("passed", "within limits")
    assert_unharmed(executor)


@pytest.mark.parametrize("deed", ["shutil.rmtree(folder)", "shutil.rmtree(folder); open(folder, 'w')"])
def test_removing_the_workers_folder_harms_nobody_after(executor: LocalExecutor, deed: str) -> None:
    source = f"import os, shutil\nfolder = os.environ['GPUSOLVER_WORKER_FOLDER']\n{deed}\nos._exit(1)\n"
    assert gate(executor, source)[0] == "worker_lost"
    assert_unharmed(executor)


# --- the end ----------------------------------------------------------------------------------------------------------


def test_after_the_end_nothing_is_left() -> None:
    """No process with the mark and no folder, whatever the last candidate left behind."""
    made = ForkClient("cpu")
    folder = made.log.parent
    worker, spare = WorkerProcess(made), WorkerProcess(made, warm=True)
    assert imported(worker, children("98806")).status == "ok"
    assert spare.hello().status == "ok"
    assert soon(lambda: len(with_mark(str(folder))) == 5)  # the server, its two workers and two that sleep
    made.close()
    assert with_mark(str(folder)) == [] and not folder.exists()
    assert_none_runs("sleep\x0098806")


def test_the_death_of_the_engine_ends_all_of_it(tmp_path: Path) -> None:
    """Killed, so that it can close nothing: the server notices, and ends its workers with their children."""
    program = """
import os, signal
from gpusolver.engine.fork_client import ForkClient
from gpusolver.engine.worker_process import WorkerProcess
from tests.engine.test_fork_server import children, imported

client = ForkClient("cpu")
assert imported(WorkerProcess(client), children("98807")).status == "ok"
print(client.log.parent, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120, env=environment
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    folder = ended.stdout.strip()
    assert soon(lambda: with_mark(folder) == []), with_mark(folder)
    assert_none_runs("sleep\x0098807")


def test_compilers_keep_what_they_made_in_the_executors_own_folder(
    client: ForkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate of another run may have left anything in the caches of the user's home."""
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")
    for name in names:
        monkeypatch.setenv(name, "elsewhere")
    found = client.environment()
    folder = Path(found["GPUSOLVER_WORKER_FOLDER"])
    assert {Path(found[name]).parent for name in names} == {folder} and len({found[name] for name in names}) == 4
