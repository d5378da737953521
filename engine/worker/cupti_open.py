"""The profiler session that a worker keeps, and the metric sets in use with it. Collects nothing itself and never imports torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from .cupti_library import CountersUnavailable
from .cupti_session import Mode, Session, Setup

_MOST_SETUPS = 4

T = TypeVar("T")


class OpenCounters:
    """The worker's one profiler session and the metric sets last used with it: opening costs a second, a new set far less."""

    def __init__(self, open_session: Callable[[], Session] = Session) -> None:
        self._setups: dict[tuple[Mode, tuple[str, ...]], Setup] = {}
        self._open: Callable[[], Session] = open_session
        self._session: Session | None = None

    def use(self, metrics: tuple[str, ...], mode: Mode, collect: Callable[[Setup], T]) -> T:
        """What `collect` returns with this set. A session that has gone bad is opened again, once."""
        reused = self._session is not None
        try:
            return collect(self._setup(metrics, mode))
        except CountersUnavailable as refused:
            with contextlib.suppress(CountersUnavailable):
                self.close()
            if not reused or refused.reason != "failed":
                raise
        return collect(self._setup(metrics, mode))

    def _setup(self, metrics: tuple[str, ...], mode: Mode) -> Setup:
        if self._session is None:
            self._session = self._open()
        key = (mode, metrics)
        if key not in self._setups:
            if len(self._setups) >= _MOST_SETUPS:  # rules retire one by one: the oldest set is not asked for again
                self._setups.pop(next(iter(self._setups))).close()
            self._setups[key] = Setup(self._session, metrics, mode)
        return self._setups[key]

    def close(self) -> None:
        """Give the counters back, to ncu for one: it cannot profile a device whose counters this process holds."""
        with contextlib.ExitStack() as stack:
            session, self._session = self._session, None
            if session is not None:
                stack.callback(session.close)
            setups, self._setups = self._setups, {}
            for setup in setups.values():
                stack.callback(setup.close)
