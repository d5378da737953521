"""The profiler session that a worker keeps, and the metric sets in use with it. Collects nothing itself and never imports torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from .cupti_library import CountersUnavailable
from .cupti_session import Mode, Session, Setup

T = TypeVar("T")


class OpenCounters:
    """The worker's profiler session and the metric set that it was opened for. Opening costs a third of a second, asking again nothing.

    A session serves one set: on CUPTI 13.0.85 a second set under the same session is scheduled, and then read as missing in part.
    """

    def __init__(self, open_session: Callable[[], Session] = Session) -> None:
        self._open: Callable[[], Session] = open_session
        self._session: Session | None = None
        self._setup: Setup | None = None
        self._key: tuple[Mode, tuple[str, ...]] | None = None

    def use(self, metrics: tuple[str, ...], mode: Mode, collect: Callable[[Setup], T]) -> T:
        """What `collect` returns with this set. A session that has gone bad is opened again, once."""
        reused = self._key == (mode, metrics)
        try:
            return collect(self._ready(metrics, mode))
        except CountersUnavailable as refused:
            with contextlib.suppress(CountersUnavailable):
                self.close()
            if not reused or refused.reason != "failed":
                raise
        return collect(self._ready(metrics, mode))

    def _ready(self, metrics: tuple[str, ...], mode: Mode) -> Setup:
        if self._setup is None or self._key != (mode, metrics):
            self.close()
            self._session = self._open()
            self._setup = Setup(self._session, metrics, mode)
            self._key = (mode, metrics)
        return self._setup

    def close(self) -> None:
        """Give the counters back, to ncu for one: it cannot profile a device whose counters this process holds."""
        with contextlib.ExitStack() as stack:
            session, setup = self._session, self._setup
            self._session = self._setup = self._key = None
            if session is not None:
                stack.callback(session.close)
            if setup is not None:
                stack.callback(setup.close)
