"""The engine's end of one worker: asks with a time limit, and ends it with all that it started. Never imports torch."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time

import msgspec
from msgspec import structs

from ..events.errors import ToolFailed
from .answers import refusal
from .fork_client import ForkClient
from .worker.protocol import LENGTH, MAX_FRAME, Hello, Message, Reply, frame

HELLO_LIMIT_S = 120.0
_LAST_WORDS_S = 5.0


class WorkerProcess:
    """One worker. `ask` always returns within its limit; a worker that does not answer is ended, and asked again it is `worker_lost`."""

    def __init__(self, server: ForkClient, warm: bool = False) -> None:
        """Fork it, and ask it to warm up where `warm`; `hello` waits for that."""
        self._server = server
        self._pid: int | None
        self._pid, self._socket = server.fork()
        self._asked, self._answered = 0, 0
        self._last = Reply(status="ok")
        self._begin(Hello(warm=warm))

    @property
    def pid(self) -> int | None:
        """Its process id; None once it has ended. A candidate may have ended it from another process: that is noticed here."""
        if self._pid is not None and _closed(self._socket):
            self._last = self._lost()
        return self._pid

    def hello(self) -> Reply:
        """Its greeting, as soon as it has come; the last words of a worker that was lost on the way."""
        while self._answered < self._asked and self._pid is not None:
            self._wake()
            self._last = self._answer(time.monotonic() + HELLO_LIMIT_S, HELLO_LIMIT_S)
        return self._last

    def ask(self, message: Message, limit_s: float) -> Reply:
        """The worker's reply, or a Reply whose status is `timeout` or `worker_lost`."""
        greeting = self.hello()
        if self.pid is None:
            return Reply(status="worker_lost", text=greeting.text)
        deadline = time.monotonic() + limit_s
        try:
            self._wake()
            self._send(message, deadline)
        except TimeoutError:
            return self._timeout(limit_s)
        except OSError:
            return self._lost()
        reply = self._answer(deadline, limit_s)
        why = refusal(message, reply)
        return self._lost(f"an answer that no worker of ours gives ({why})") if why else reply

    def kill(self) -> int | None:
        """End the worker and everything that it started (compilers, forks, sessions of their own); its exit code where known."""
        if self._pid is None:
            return None
        pid, self._pid = self._pid, None
        code = self._server.reap(pid)
        self._socket.close()
        return code

    def _begin(self, message: Message) -> None:
        """Ask and do not wait: `hello` does."""
        try:
            self._wake()
            self._send(message, time.monotonic() + _LAST_WORDS_S)
        except (OSError, TimeoutError):
            self._last = self._lost()

    def _wake(self) -> None:
        """A candidate in another worker may have stopped this one."""
        if self._pid is not None:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGCONT)

    def _send(self, message: Message, deadline: float) -> None:
        _send_within(self._socket, structs.replace(message, number=self._asked + 1), deadline)
        self._asked += 1

    def _answer(self, deadline: float, limit_s: float) -> Reply:
        try:
            payload = _receive_within(self._socket, deadline)
            reply = None if payload is None else msgspec.msgpack.decode(payload, type=Reply)
            self._answered += 1
            if reply is not None and reply.number != self._answered:
                # Two processes answer on this socket, or a candidate does.
                return self._lost(f"question {self._answered}: found an answer to question {reply.number}")
        except TimeoutError:
            return self._timeout(limit_s)
        except (OSError, ValueError, msgspec.DecodeError) as error:  # a candidate may write into the socket
            reply = None
            sys.stderr.write(f"worker socket: {error}\n")
        if reply is None:
            return self._lost()
        if reply.exiting:
            self.kill()
        return reply

    def _timeout(self, limit_s: float) -> Reply:
        self.kill()
        return Reply(status="timeout", text=f"no answer within {limit_s:.0f} s; worker killed")

    def _lost(self, why: str = "") -> Reply:
        """A worker that closed its socket or cannot be believed: it has ended, or is no use any more."""
        code = self.kill()
        return Reply(
            status="worker_lost", text=why[:2000] or f"worker ended (exit {code}): {self._server.log_tail(500)}"
        )


def usable(reply: Reply, device: str) -> dict[str, str]:
    """Device and software of a worker that has greeted; raises ToolFailed where it has no usable device."""
    if reply.status != "ok":
        raise ToolFailed(
            f"GPU worker: expected a {device} device, found none usable ({reply.status}: {reply.text.strip()[:600]}). "
            "Install the 'gpu' extra and an NVIDIA driver, or run with --device recorded."
        )
    return reply.facts


def _closed(stream: socket.socket) -> bool:
    """Whether the other end is closed and nothing of it is left to read."""
    try:
        return stream.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _receive_within(stream: socket.socket, deadline: float) -> bytes | None:
    """One frame's payload, or None where the stream ends first; raises TimeoutError at the deadline, whatever has come by then."""
    head = _read(stream, LENGTH.size, deadline)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    if size > MAX_FRAME:
        raise ValueError(f"frame of {size} bytes; at most {MAX_FRAME} expected")
    return _read(stream, size, deadline)


def _read(stream: socket.socket, size: int, deadline: float) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        if not select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        part = stream.recv(min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)


def _send_within(stream: socket.socket, message: Message, deadline: float) -> None:
    """Write one frame to a worker that may have stopped reading; raises TimeoutError at the deadline."""
    left = memoryview(frame(message))
    while left:
        if not select.select([], [stream], [], max(0.0, deadline - time.monotonic()))[1]:
            raise TimeoutError
        left = left[stream.send(left[:65536], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
