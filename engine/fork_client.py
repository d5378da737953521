"""The engine's end of the fork server: starts it, has workers forked and reaped. Never imports torch and speaks to no worker."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

from .. import __path__ as package_path
from ..events.errors import ToolFailed
from .caches import FOLDERS
from .marked import kill_marked
from .worker.forkserver import REQUEST_BYTES

# Keys of models are for the engine alone: what they rewrite must not read them.
SECRETS = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY")
START_LIMIT_S = 120.0
_ANSWER_LIMIT_S = 45.0
_LONGEST_LOG = 16 << 20


class ForkClient:
    """One fork server with a folder of its own; a lost server is replaced by the next request."""

    def __init__(self, device: str = "cuda", index: int = 0) -> None:
        self._device, self._index = device, index
        # Sources, caches, log. Candidates may write there, and not all that they leave can be removed.
        self._folder = tempfile.TemporaryDirectory(prefix="gpusolver-worker-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self._folder.name)
        self.log = self.folder / "log"
        self.log.touch()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self) -> tuple[int, socket.socket]:
        """(process id, socket) of a new worker; raises ToolFailed where the server does not start."""
        for _ in range(2):  # a candidate may have killed the server: then once more, with a new one
            self._tidy()
            control = self._started()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    self._wake()
                    socket.send_fds(control, [b"fork"], [theirs.fileno()])
                return int(self._answer(control)), ours
            except (OSError, ValueError):
                ours.close()
                self._end()
        raise ToolFailed(f"fork server: expected a worker, found none. {self.log_tail(600)}")

    def reap(self, pid: int) -> int | None:
        """Kill a worker and all that it started; its exit code, None where the server was lost too."""
        if self._control is None:
            return None
        try:
            self._wake()
            self._control.send(f"reap {pid}".encode())
            return int(self._answer(self._control))
        except (OSError, ValueError):
            self._end()
            return None

    def close(self) -> None:
        """End the server and everything that it started, and remove the folder."""
        self._end()
        self._folder.cleanup()

    def log_tail(self, size: int = 2000) -> str:
        """The end of what workers and their candidates printed."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - size))
                return log.read(size).decode(errors="replace")
        except OSError as error:  # a candidate may have removed it
            return f"no log: {error}"

    def environment(self) -> dict[str, str]:
        """Environment variables of the workers, and of whatever else runs candidates on their device."""
        root = str(pathlib.Path(package_path[0]).parent)
        environment = {
            **{name: value for name, value in os.environ.items() if name not in SECRETS},
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Line information puts file paths into the machine code, and equal kernels would look different.
            "TRITON_DISABLE_LINE_INFO": "1",
            # What was compiled elsewhere, by whatever version and for whomever, is not run here.
            **{variable: str(self.folder / name) for variable, name in FOLDERS.items()},
            "GPUSOLVER_WORKER_DEVICE": self._device,
            "GPUSOLVER_WORKER_FOLDER": self._folder.name,  # also the mark of whatever a worker starts
        }
        if self._device == "cpu":
            environment["TRITON_INTERPRET"] = "1"
        if self._device == "cuda" and "CUDA_VISIBLE_DEVICES" not in os.environ:
            environment["CUDA_VISIBLE_DEVICES"] = str(self._index)
        return environment

    def _started(self) -> socket.socket:
        if self._control is not None:
            return self._control
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self.log.open("ab") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "gpusolver.engine.worker.forkserver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(START_LIMIT_S)
        try:
            greeting = ours.recv(REQUEST_BYTES)
        except OSError:
            greeting = b""
        if greeting != b"ready":
            ours.close()
            self._end()
            raise ToolFailed(f"fork server: expected it to start within {START_LIMIT_S:.0f} s. {self.log_tail(600)}")
        self._control = ours
        return ours

    def _tidy(self) -> None:
        """The folder and the log as workers need them, whatever candidates did there."""
        with contextlib.suppress(OSError):
            folder = self.log.parent
            if not folder.is_dir() or folder.is_symlink():
                folder.unlink(missing_ok=True)
                folder.mkdir()
            folder.chmod(0o700)
            self.log.touch()
            if self.log.stat().st_size > _LONGEST_LOG:
                os.truncate(self.log, 0)

    def _wake(self) -> None:
        """A candidate may have stopped the server."""
        if self._server is not None:
            self._server.send_signal(signal.SIGCONT)

    def _answer(self, control: socket.socket) -> bytes:
        control.settimeout(_ANSWER_LIMIT_S)
        return control.recv(REQUEST_BYTES)

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._wake()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(timeout=10)
            self._server.kill()
            self._server.wait()
            self._server = None
        kill_marked(self._folder.name)
