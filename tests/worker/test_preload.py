"""The compiler stack imported before the fork: CUDA is not asked meanwhile, and a stack that spoils forked children is noticed and dropped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gpusolver.engine.worker import preload

pytestmark = pytest.mark.torch_cpu

# A fork server as the engine starts it, but for a stack that notes each import of it and does what it is told,
# and a probe that knows whether its own process or its parent has imported it.
SERVER = """
import os, sys
from gpusolver.engine.worker import forkserver, preload

state = []

def compiler():
    state.append("imported")
    with open(sys.argv[2], "a") as counted:
        counted.write("imported ")
    {deed}

def use_device():
    {probe}

preload.compiler, preload._use_device = compiler, use_device
forkserver.main(int(sys.argv[1]))
"""
SPOILT = 'if state: raise RuntimeError("CUDA was used before the fork")'


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls that reach the CUDA runtime of a torch that looks as if it were built with CUDA."""
    calls: list[str] = []

    def count() -> int:
        calls.append("count")
        return 0

    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", count, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_init", lambda: calls.append("init"), raising=False)
    monkeypatch.delenv("PYTORCH_NVML_BASED_CUDA_CHECK", raising=False)
    return calls


def stack(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return name


# --- while it is imported ---------------------------------------------------------------------------------------------


def test_a_stack_that_asks_for_devices_learns_of_one_and_reaches_no_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: list[str]
) -> None:
    text = "import torch\nFOUND = (torch.cuda.is_available(), torch.cuda.device_count())\n"
    name = stack(tmp_path, monkeypatch, "asks_for_devices", text)
    preload.compiler((name,))
    assert sys.modules[name].FOUND == (True, 1) and runtime == []
    assert torch.cuda.is_available() is False and runtime == ["count"]  # all as before


def test_a_stack_that_opens_a_context_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: list[str]
) -> None:
    name = stack(tmp_path, monkeypatch, "opens_a_context", "import torch\ntorch._C._cuda_init()\n")
    with pytest.raises(RuntimeError, match="a context was asked for"):
        preload.compiler((name,))
    assert runtime == []


def test_a_name_that_this_torch_lacks_is_left_out() -> None:
    preload.compiler(("torch._inductor.no_such_module", "no_such_package.module", "json"))
    assert "no_such_package" not in sys.modules


def test_the_stack_is_what_a_first_compiled_call_would_import() -> None:
    """In a process of its own, with the runtime watched: the imports ask it nothing, and afterwards dynamo and inductor are there."""
    program = """
import sys, torch
calls = []
torch._C._cuda_getDeviceCount = lambda: calls.append(1) or 1
torch._C._cuda_getCurrentRawStream = lambda index: 0
from gpusolver.engine.worker import preload
preload.compiler()
wanted = ("torch._inductor.compile_fx", "torch._dynamo.convert_frame", "torch._inductor.codegen.triton")
print(calls, [name in sys.modules for name in wanted], torch.cuda.is_initialized())
"""
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == "[] [True, True, True] False"


# --- the trial --------------------------------------------------------------------------------------------------------


def _fails() -> None:
    raise RuntimeError("Cannot re-initialize CUDA in forked subprocess\nsecond line")


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        (lambda: None, ""),
        (_fails, "RuntimeError: Cannot re-initialize CUDA in forked subprocess"),
        (lambda: os._exit(3), "the trial child ended without a word (exit 3)"),
        (lambda: os.abort(), "the trial child ended without a word (exit -6)"),
        (lambda: time.sleep(60), "no answer within 0.3 s"),
    ],
    ids=["works", "raises", "exits", "aborts", "hangs"],
)
def test_what_became_of_the_child_is_told(
    monkeypatch: pytest.MonkeyPatch, probe: Callable[[], None], said: str
) -> None:
    monkeypatch.setattr(preload, "TRIAL_LIMIT_S", 0.3 if "no answer" in said else 30.0)
    before = sorted(os.listdir("/proc/self/fd"))
    trial = preload.begin_trial(probe)
    assert preload.end_trial(trial) == said
    assert not Path(f"/proc/{trial.pid}").exists() and sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="shows what the trial says where there is no CUDA")
def test_without_cuda_the_trial_fails_and_harms_nothing_here() -> None:
    assert preload.end_trial(preload.begin_trial()) != ""
    assert not torch.cuda.is_initialized()


# --- the fork server --------------------------------------------------------------------------------------------------


@contextmanager
def served(folder: Path, deed: str, probe: str) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """A fork server with that stack and that probe, once it is ready."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "GPUSOLVER_WORKER_DEVICE": "cuda", "GPUSOLVER_WORKER_FOLDER": str(folder)}
    program = SERVER.format(deed=deed, probe=probe)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", program, str(theirs.fileno()), str(folder / "counted")],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            pass_fds=[theirs.fileno()],
        )
    try:
        ours.settimeout(120)
        assert ours.recv(64) == b"ready"
        yield server, ours
    finally:
        ours.close()
        server.wait(timeout=30)


@pytest.mark.parametrize(
    ("deed", "probe", "why"),
    [
        ("pass", SPOILT, "RuntimeError: CUDA was used before the fork"),
        ("raise OSError('half of it')", "pass", "OSError: half of it"),
        ("pass", "if state: os.kill(os.getpid(), 11)", "the trial child ended without a word (exit -11)"),
    ],
    ids=["spoils children", "fails", "crashes children"],
)
def test_a_stack_that_spoils_children_is_dropped(tmp_path: Path, deed: str, probe: str, why: str) -> None:
    """The server starts anew under the same process id, imports the stack no second time, and says why."""
    with served(tmp_path, deed, probe) as (server, _):
        environ = Path(f"/proc/{server.pid}/environ").read_bytes().decode().split("\0")
        assert f"{preload.NOTE}={preload.DROPPED}: {why}" in environ
    assert (tmp_path / "counted").read_text().split() == ["imported"]
    assert server.stderr is not None and f"({why}); starting without" in server.stderr.read()


def test_a_stack_that_spoils_nothing_is_kept(tmp_path: Path) -> None:
    with served(tmp_path, "pass", "pass") as (server, control):
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(control, [b"fork"], [theirs.fileno()])
        assert int(control.recv(64)) != server.pid  # a worker was forked
        ours.close()
    assert (tmp_path / "counted").read_text().split() == ["imported"]
    assert server.stderr is not None and "starting without" not in server.stderr.read()
