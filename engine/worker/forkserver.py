"""Forks workers that find torch and triton imported already. Holds no CUDA context, runs no candidate, and judges nothing.

The engine's end is `engine/fork_client.py`. One datagram a request on the control socket: `fork` with a socket for the new
worker, or `reap <pid>`; one answer each. What a worker leaves behind becomes a child of this process (it is their subreaper),
and dies when its worker is reaped.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import resource
import signal
import socket
import sys
import time
from typing import NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SWEEP_LIMIT_S, _WAIT_LIMIT_S = 5.0, 30.0
REQUEST_BYTES = 64
_LARGEST_FILE, _LONGEST_NOTE = 512 << 20, 400


def main(descriptor: int) -> None:
    """Serve the control socket until the engine closes it; then every worker ends too."""
    control = socket.socket(fileno=descriptor)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if spoiled := _preload():
        _start_anew(spoiled)
    control.set_inheritable(False)
    control.send(b"ready")
    workers: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 1)
        if not message:
            break
        word, _, argument = message.decode().partition(" ")
        if word == "fork":
            pid = _fork(control, descriptors[0])
            workers.add(pid)
            control.send(str(pid).encode())
        else:
            workers.discard(int(argument))
            control.send(str(_reap(int(argument), workers)).encode())
    for pid in list(workers):
        workers.discard(pid)
        _reap(pid, workers)


def _preload() -> str:
    """Import what a worker needs and fill the caches that triton keys its kernels by: seconds that no worker pays again.

    Empty, or why the compiler stack must not be imported here.
    """
    import torch.cuda

    from . import calibration, checking, counters, extras, preload, referee, switches, timing  # noqa: F401

    with switches.strict():  # reading and setting all of them imports a part of the compiler stack
        pass
    trial = None
    if os.environ.get("GPUSOLVER_WORKER_DEVICE") == "cuda" and preload.NOTE not in os.environ:
        try:
            preload.compiler()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        trial = preload.begin_trial()
    with contextlib.suppress(Exception):
        _warm_triton()  # while the trial goes on

    if torch.cuda.is_initialized():  # a forked process could not use the device then
        raise SystemExit("fork server: expected no CUDA context before the first worker, found one")
    if trial is None:
        return ""
    os.environ[preload.NOTE] = preload.PRELOADED
    return preload.end_trial(trial)


def _start_anew(why: str) -> NoReturn:
    """The same program once more, without the compiler stack. The control socket stays open."""
    from . import preload

    sys.stderr.write(
        f"fork server: the compiler stack cannot be imported before the fork ({why}); starting without it\n"
    )
    sys.stderr.flush()
    os.environ[preload.NOTE] = f"{preload.DROPPED}: {why}".replace("\0", "")[:_LONGEST_NOTE]
    os.execv(sys.executable, sys.orig_argv)


def _warm_triton() -> None:
    import triton.compiler.compiler
    import triton.language
    from triton.runtime import cache

    with contextlib.suppress(ImportError):
        import triton.experimental.gluon.nvidia.hopper
    key = getattr(cache, "triton_key", None) or getattr(triton.compiler.compiler, "triton_key", None)
    if key is not None:
        key()  # a digest over the whole installation
    with contextlib.suppress(ImportError):
        from triton.backends.nvidia import compiler as nvidia

        for name in ("get_ptxas", "get_ptxas_version"):
            with contextlib.suppress(Exception):
                getattr(nvidia, name)(90)


def _fork(control: socket.socket, descriptor: int) -> int:
    """Start a worker that talks on `descriptor`; in the worker this does not return."""
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    try:
        control.close()
        os.setsid()
        _prctl(_PR_SET_CHILD_SUBREAPER, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, most))  # endless output fills no disk
        from .serving import serve

        serve(socket.socket(fileno=descriptor))
    finally:
        os._exit(1)


def _reap(pid: int, others: set[int]) -> int:
    """Kill a worker and all that it left; its exit code, negative for a signal."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    code = _wait(pid)
    deadline = time.monotonic() + _SWEEP_LIMIT_S
    while (left := _descendants(others)) and time.monotonic() < deadline:
        for stray in left:
            with contextlib.suppress(OSError):
                os.kill(stray, signal.SIGKILL)
        for stray in left:
            with contextlib.suppress(OSError):
                os.waitpid(stray, os.WNOHANG)  # reaps only what has come to be ours
        time.sleep(0.005)
    return code


def _wait(pid: int) -> int:
    deadline = time.monotonic() + _WAIT_LIMIT_S
    while time.monotonic() < deadline:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return -signal.SIGKILL  # in the kernel still (a driver call); it is gone when that returns


def _descendants(workers: set[int]) -> list[int]:
    """Processes that stem from this one by way of no live worker."""
    parents: dict[int, int] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                )
    found, last = set[int](), {os.getpid()}
    while last:
        last = {pid for pid, parent in parents.items() if parent in last and pid not in workers}
        found |= last
    return sorted(found)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
