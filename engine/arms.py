"""Which worker runs which sources: a fresh one for every candidate, others standing by. Asks nothing itself and measures nothing."""

from __future__ import annotations

from collections.abc import Iterable

from .caches import Caches
from .fork_client import ForkClient
from .worker_process import WorkerProcess


class Arms:
    """The worker in use with the sources that it has run, and warm spares.

    A source that has run in a process may have changed it. So what is to be shown of one source is asked of a process that ran
    no other, and a pair is timed in one that ran no third. What compilers left on disk for a source is seen by workers of
    that source alone.

    Times wait until every spare has warmed up. So the spares, of which there are `spares` at most, are made all at once, when the
    last is in use: they warm up side by side, and the candidates that follow wait for none.
    """

    def __init__(self, server: ForkClient, spares: int = 1) -> None:
        self._server = server
        self._worker: WorkerProcess | None = None
        self._spares: list[WorkerProcess] = []
        self._most = spares
        self._ran: set[str] = set()
        self._caches = Caches(server.folder)

    @property
    def pid(self) -> int | None:
        """Process id of the worker in use."""
        return None if self._worker is None else self._worker.pid

    def alone(self, sources: Iterable[str]) -> WorkerProcess:
        """A worker that has run none but these sources."""
        wanted = set(sources)
        return self._take(wanted, fits=self._ran <= wanted)

    def beside(self, source: str) -> WorkerProcess:
        """A worker that has run this source, whatever else it ran; else one that has run none."""
        return self._take({source}, fits=source in self._ran or not self._ran)

    def settle(self) -> None:
        """Wait until the spares have warmed up: nothing else may use the device while times are taken."""
        for spare in self._spares:
            spare.hello()

    def close(self, after: Iterable[str] = ()) -> None:
        """End both. Compilers that run these sources elsewhere find what was kept for them."""
        for worker in (self._worker, *self._spares):
            if worker is not None:
                worker.kill()
        self._worker, self._spares = None, []
        self._clear()
        self._caches.lay(after)

    def _take(self, wanted: set[str], fits: bool) -> WorkerProcess:
        if self._worker is None or self._worker.pid is None or not fits:
            if self._worker is not None:
                self._worker.kill()
            self._clear()
            self._worker = self._ready()
            if not self._spares:
                self._spares = [WorkerProcess(self._server, warm=True) for _ in range(self._most)]
        if wanted - self._ran:
            self._keep()
            self._caches.lay(wanted - self._ran)
        self._ran |= wanted
        return self._worker

    def _clear(self) -> None:
        """After the end of a worker: nothing of what it ran is left for the next."""
        self._keep()
        self._caches.empty()
        self._ran = set()

    def _keep(self) -> None:
        if len(self._ran) == 1:  # what two ran may be the work of either
            self._caches.keep(*self._ran)

    def _ready(self) -> WorkerProcess:
        """The first spare that came up and is alive; else a new worker."""
        while self._spares:
            spare = self._spares.pop(0)
            if spare.hello().status == "ok" and spare.pid is not None:
                return spare
            spare.kill()
        return WorkerProcess(self._server, warm=True)
