"""The engine's end of a GPU worker: starts it, asks with a time limit, kills and replaces it. Never imports torch."""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO

import msgspec

from .. import __path__ as package_path
from ..events.errors import ToolFailed
from .worker.protocol import LENGTH, MAX_FRAME, Hello, Message, Reply, frame

START_LIMIT_S = 120.0
_SWEEP_LIMIT_S = 5.0


class WorkerProcess:
    """One worker on one device. `ask` always returns within its limit; a worker that does not answer is replaced."""

    def __init__(self, device: str = "cuda", index: int = 0) -> None:
        self._device, self._index = device, index
        self._folder = tempfile.TemporaryDirectory(prefix="gpusolver-worker-")  # sources and log; gone with this object
        self._log = pathlib.Path(self._folder.name, "log")
        self._log.touch()
        self._child: subprocess.Popen[bytes] | None = None
        self.started = 0

    @property
    def pid(self) -> int | None:
        """Process id of the live worker, None when there is none."""
        return None if self._child is None else self._child.pid

    def ask(self, message: Message, limit_s: float) -> Reply:
        """The worker's reply, or a Reply whose status is `timeout` or `worker_lost`."""
        if self._child is None:
            self._start()
        assert self._child is not None and self._child.stdin is not None and self._child.stdout is not None
        try:
            deadline = time.monotonic() + limit_s
            _send_within(self._child.stdin, message, deadline)
            payload = _receive_within(self._child.stdout, deadline)
            reply = None if payload is None else msgspec.msgpack.decode(payload, type=Reply)
        except TimeoutError:
            self.kill()
            return Reply(status="timeout", text=f"no answer within {limit_s:.0f} s; worker killed")
        except (OSError, ValueError, msgspec.DecodeError) as error:  # a candidate may write into the pipe
            reply = None
            sys.stderr.write(f"worker pipe: {error}\n")
        if reply is None:
            return self._lost()
        if reply.exiting:
            self.kill()
        return reply

    def kill(self) -> None:
        """End the worker and everything that it started (compilers, forks, sessions of their own), and reap it."""
        if self._child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        _kill_marked(self._folder.name)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._child = None

    def log_tail(self, size: int = 2000) -> str:
        """The end of what the worker and its candidates printed."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - size))
            return log.read(size).decode(errors="replace")

    def _lost(self) -> Reply:
        assert self._child is not None
        try:
            code = self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        return Reply(status="worker_lost", text=f"worker ended (exit {code}): {self.log_tail(500)}")

    def environment(self) -> dict[str, str]:
        """Environment variables of the worker, and of whatever else runs candidates on its device."""
        root = str(pathlib.Path(package_path[0]).parent)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Line information puts file paths into the machine code, and equal kernels would look different.
            "TRITON_DISABLE_LINE_INFO": "1",
            "GPUSOLVER_WORKER_DEVICE": self._device,
            "GPUSOLVER_WORKER_FOLDER": self._folder.name,  # also the mark of whatever the worker starts
        }
        if self._device == "cpu":
            environment["TRITON_INTERPRET"] = "1"
        if self._device == "cuda" and "CUDA_VISIBLE_DEVICES" not in os.environ:
            environment["CUDA_VISIBLE_DEVICES"] = str(self._index)
        return environment

    def _start(self) -> None:
        command = [sys.executable, "-m", "gpusolver.engine.worker"]
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=self.environment(),
                start_new_session=True,
            )
        self.started += 1

    def hello(self) -> dict[str, str]:
        """Device and software of the worker; raises ToolFailed where it has no usable device."""
        reply = self.ask(Hello(), START_LIMIT_S)
        if reply.status != "ok":
            raise ToolFailed(
                f"GPU worker: expected a {self._device} device, found none usable ({reply.status}: {reply.text.strip()[:600]}). "
                "Install the 'gpu' extra and an NVIDIA driver, or run with --device recorded."
            )
        return reply.facts


def _kill_marked(mark: str) -> None:
    """Kill every process whose environment names the worker's folder: a child in a session of its own is in no group of ours."""
    deadline = time.monotonic() + _SWEEP_LIMIT_S
    while (left := _marked(mark)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)  # until they are gone, and what they may have started meanwhile


def _marked(mark: str) -> list[int]:
    wanted, found = f"GPUSOLVER_WORKER_FOLDER={mark}".encode(), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _receive_within(stream: IO[bytes], deadline: float) -> bytes | None:
    """One frame's payload, or None where the pipe ends first; raises TimeoutError at the deadline, whatever has come by then."""
    head = _read(stream, LENGTH.size, deadline)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    if size > MAX_FRAME:
        raise ValueError(f"frame of {size} bytes; at most {MAX_FRAME} expected")
    return _read(stream, size, deadline)


def _read(stream: IO[bytes], size: int, deadline: float) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        if not select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(stream.fileno(), min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)


def _send_within(stream: IO[bytes], message: Message, deadline: float) -> None:
    """Write one frame to a worker that may have stopped reading; raises TimeoutError at the deadline."""
    left = memoryview(frame(message))
    while left:
        if not select.select([], [stream], [], max(0.0, deadline - time.monotonic()))[1]:
            raise TimeoutError
        left = left[os.write(stream.fileno(), left[: select.PIPE_BUF]) :]
