"""The default clock of a ledger. Never used for order: that is what seq is for."""

from __future__ import annotations

import time
from functools import lru_cache


def utc_now() -> str:
    """The time as ISO 8601 in UTC with milliseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return f"{_to_the_second(seconds)}.{nanoseconds // 10**6:03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
