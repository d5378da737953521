"""Counters by Nsight Compute, where CUPTI cannot be used in process. Never times: replay stretches the program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ...profilers.ncu_calls import AUXILIARY, aggregate
from ...profilers.ncu_csv import Obstacle, obstacle, parse
from .cupti_host import supported
from .cupti_library import CountersUnavailable, Reason

SHARED_OPTIONS = (
    "--target-processes=all",
    "--profile-from-start=off",
    "--replay-mode=kernel",
    "--cache-control=all",
    "--clock-control=none",
)
_OPTIONS = (*SHARED_OPTIONS, "--csv", "--page=raw", "--print-units=base")
_REFUSALS: dict[Obstacle, tuple[Reason, str]] = {
    "permission": ("permission", "the driver refuses counters to this user"),
    "busy": ("busy", "another process holds the counters"),
    "unknown_metric": ("unsupported", "ncu does not know a metric that CUPTI names"),
    "no_kernels": (
        "failed",
        "no kernels were profiled: none ran between cudaProfilerStart and cudaProfilerStop, or a filter left them out",
    ),
}


class Profile(NamedTuple):
    """The `counters` artifact of a call, how many kernels it covers, and all that ncu and the program printed."""

    counters: dict[str, object]
    kernels: int
    text: str


def arguments(command: Sequence[str], metrics: Sequence[str], ncu: str = "ncu") -> list[str]:
    """The command line that profiles all kernels between cudaProfilerStart and cudaProfilerStop, from a cold L2."""
    return [ncu, *_OPTIONS, "--metrics", ",".join(metrics), *command]


def collect(command: Sequence[str], metrics: Sequence[str], chip: str, timeout_s: float) -> Profile:
    """Run `command` under ncu and sum its counters over the profiled kernels.

    The program marks one call with cudaProfilerStart and cudaProfilerStop. `chip` is NVIDIA's name ("GH100"): a metric
    that it lacks is None, and not asked for, since ncu ends on an unknown name. Raises CountersUnavailable, and
    ToolFailed for output that cannot be read.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersUnavailable("ncu is not on PATH: install Nsight Compute, or use CUPTI in process", "library")
    known = supported(chip, metrics)
    asked = [*known, *(name for name in AUXILIARY if name not in known)]
    code, text = run(arguments(command, asked, ncu), timeout_s)
    return profile(text, code, metrics, chip)


def profile(text: str, code: int, metrics: Sequence[str], chip: str) -> Profile:
    """The profile in ncu's output; raises CountersUnavailable where that or the exit code says that there is none."""
    refuse(text, code)
    report = parse(text, (*metrics, *AUXILIARY))
    counters = {
        "collector": "ncu",
        "passes": report.passes,
        "chip": chip,
        "cache": "cold",
        "metrics": aggregate(report.kernels, metrics),
    }
    return Profile(counters, len(report.kernels), text)


def refuse(text: str, code: int) -> None:
    """Raise CountersUnavailable where ncu's words or its exit code say that nothing was profiled."""
    kind = obstacle(text)
    if kind is not None:
        reason, said = _REFUSALS[kind]
        raise CountersUnavailable(f"ncu: {said}", reason)
    if code:
        errors = [line for line in text.splitlines() if line.startswith("==ERROR==")]
        raise CountersUnavailable(f"ncu ended with {code}: {' '.join(errors)[:500] or text[-500:]}")


def run(argv: list[str], timeout_s: float, environment: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """Exit code, and the program's output before ncu's log. Own TMPDIR: ncu's lock in a shared one blocks others."""
    with TemporaryDirectory(prefix="gpusolver-ncu-") as scratch:
        environment = {**environment, "LC_ALL": "C", "TMPDIR": scratch}
        printed, log = Path(scratch, "printed"), Path(scratch, "log")
        argv = [argv[0], f"--log-file={log}", *argv[1:]]
        with printed.open("wb") as sink:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment, start_new_session=True
            )
            code = _wait(process, timeout_s)
        texts = [path.read_text("utf-8", errors="replace") for path in (printed, log) if path.exists()]
        return code, "\n".join(texts)


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """The exit code. On time-out the whole session ends, for ncu's target outlives ncu."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise CountersUnavailable(
            f"ncu did not end within {timeout_s:g} s: give it more time or fewer metrics"
        ) from None
