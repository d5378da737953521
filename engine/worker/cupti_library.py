"""The loaded CUPTI library: where it is found, how it is called, what its refusals mean. Never collects a counter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ...events.errors import ToolFailed
from .cupti_abi import Params

Reason = Literal["permission", "busy", "unsupported", "library", "failed"]

_REASONS: dict[int, Reason] = {
    26: "busy",
    27: "unsupported",
    33: "unsupported",
    35: "permission",
    38: "unsupported",
    39: "busy",
    40: "permission",
    41: "unsupported",
    42: "unsupported",
    43: "unsupported",
    44: "unsupported",
    45: "unsupported",
    46: "unsupported",
}
_REMEDIES: dict[Reason, str] = {
    "permission": "ERR_NVGPUCTRPERM: run as root or with CAP_SYS_ADMIN, or load the driver with "
    "NVreg_RestrictProfilingToAdminUsers=0; without it only timings are taken",
    "busy": "another profiler holds the GPU: end ncu, nsys, Proton, DCGM profiling or torch.profiler and run again",
    "unsupported": "this GPU or its mode (MIG, virtual, WSL, confidential computing) gives no counters to CUPTI; "
    "only timings are taken",
    "library": "install nvidia-cuda-cupti 13.0 beside torch, as torch's CUDA 13 wheels do",
    "failed": "run again in a fresh worker; if it stays, only timings can be taken",
}


class CountersUnavailable(ToolFailed):
    """Hardware counters could not be read; `reason` says which kind of obstacle, the message what to do."""

    def __init__(self, message: str, reason: Reason = "failed") -> None:
        super().__init__(f"{message}; {_REMEDIES[reason]}")
        self.reason: Reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without adding the remedy twice."""
        return (_restored, (str(self), self.reason))


def _restored(text: str, reason: Reason) -> CountersUnavailable:
    error = CountersUnavailable("", reason)
    error.args = (text,)
    return error


class Cupti:
    """One loaded libcupti. `path` is the file it came from, or the name given to the loader."""

    def __init__(self, library: Any, path: str) -> None:
        self._library = library
        self.path = path

    def attempt(self, function: str, params: Params) -> int:
        """Call a function that takes one parameter struct; its result code, 0 for success."""
        entry = getattr(self._library, function, None)
        if entry is None:
            raise CountersUnavailable(f"{self.path} has no {function}: CUPTI 13.0 expected", "library")
        return int(entry(ctypes.byref(params)))

    def call(self, function: str, params: Params) -> None:
        """Like `attempt`, but any code other than 0 raises CountersUnavailable."""
        code = self.attempt(function, params)
        if code:
            text = f"{function} answered {code} ({self._name(code)}) from {self.path}"
            raise CountersUnavailable(text, _REASONS.get(code, "failed"))

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuptiGetResultString(code, ctypes.byref(text))
        return (text.value or b"unknown").decode()


@cache
def load() -> Cupti:
    """The process's CUPTI: the copy that torch mapped, else the wheel's, else the loader's. Loaded once."""
    refusals = []
    for path in (*mapped(_maps()), *_wheels(), "libcupti.so.13"):
        try:
            _load_beside(path)
            return Cupti(ctypes.CDLL(path), path)
        except OSError as error:
            refusals.append(str(error))
    raise CountersUnavailable(f"no libcupti could be loaded ({'; '.join(refusals)})", "library")


def mapped(maps: str) -> list[str]:
    """Files of libcupti in a /proc/PID/maps text, CUDA 13's first: Triton's profiler brings an older copy along."""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = {parts[5] for parts in fields if len(parts) == 6 and Path(parts[5]).name.startswith("libcupti.so")}
    return sorted(paths, key=lambda path: (".so.13" not in path, path))


def _maps() -> str:
    try:
        return Path("/proc/self/maps").read_text("utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _wheels() -> Iterator[str]:
    for entry in sys.path:
        for path in sorted(Path(entry or ".", "nvidia").glob("*/lib/libcupti.so.13")):
            yield str(path)


def _load_beside(path: str) -> None:
    """libcupti opens its nvperf libraries by bare name; loading those beside it first keeps the versions together."""
    for name in ("libnvperf_host.so", "libnvperf_target.so"):
        neighbour = Path(path).with_name(name)
        if Path(path).is_absolute() and neighbour.exists():
            ctypes.CDLL(str(neighbour))
