"""One ncu run over several calls, each in a range of its own: counters, and ncu's own rules. Never times, starts no worker."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ...events.errors import BadInput, ToolFailed
from ...profilers.metrics import for_chip
from ...profilers.ncu_calls import AUXILIARY
from . import ncu_reading
from .cupti_host import supported
from .cupti_library import CountersUnavailable
from .ncu import SHARED_OPTIONS, refuse, run
from .protocol import Count, Reply

_OPTIONS = (*SHARED_OPTIONS, "--nvtx", "--set=full", "--import-source=no", "--force-overwrite")


def arguments(command: Sequence[str], metrics: Sequence[str], report: Path, ncu: str = "ncu") -> list[str]:
    """The command line that writes a report with every section and rule, and the metrics beside them."""
    return [ncu, *_OPTIONS, f"--export={report}", "--metrics", ",".join(metrics), *command]


def collect(
    requests: Sequence[Count],
    metrics: Sequence[str],
    chip: str,
    limit_s: float,
    environment: Mapping[str, str],
    command: Sequence[str] = (sys.executable, "-m", "gpusolver.engine.worker.once"),
) -> list[Reply]:
    """Artifacts `counters` (kernel replay, cold) and `ncu_rules` of each request, or a status with its reason.

    The metrics of the requests are not looked at: all are asked for `metrics`. No other process may hold the card's
    counters.
    """
    wanted, began = for_chip(chip, metrics), time.perf_counter()
    with TemporaryDirectory(prefix="gpusolver-batch-") as folder:
        asked, report = Path(folder, "requests"), Path(folder, "report.ncu-rep")
        asked.write_bytes(msgspec.msgpack.encode(list(requests)))
        try:
            text = _profile([*command, str(asked)], wanted, chip, report, limit_s, environment)
        except CountersUnavailable as refused:
            return [Reply(status=f"ncu_{refused.reason}", text=str(refused)) for _ in requests]
        try:
            found = ncu_reading.launches(report, wanted)
        except (BadInput, ToolFailed) as error:
            return [Reply(status="ncu_failed", text=str(error)) for _ in requests]
        each_s = (time.perf_counter() - began) / max(1, len(requests))
        names = [ncu_reading.range_name(number) for number in range(len(requests))]
        return [_reply(found, name, wanted, text, each_s) for name in names]


def _profile(
    command: Sequence[str],
    metrics: Sequence[str],
    chip: str,
    report: Path,
    limit_s: float,
    environment: Mapping[str, str],
) -> str:
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersUnavailable("ncu is not on PATH: install Nsight Compute", "library")
    known = supported(chip, (*dict.fromkeys((*metrics, *AUXILIARY)),))  # ncu ends on a name that it does not know
    code, text = run(arguments(command, known, report, ncu), limit_s, environment)
    refuse(text, code)
    if not report.exists():
        raise CountersUnavailable(f"ncu wrote no report: {text[-500:]}")
    return text


def _reply(found: Sequence[ncu_reading.Launch], name: str, metrics: Sequence[str], text: str, wall_s: float) -> Reply:
    own = [launch for launch in found if name in launch.ranges]
    if not own:
        return Reply(status="ncu_failed", text=f"no kernel was profiled in range {name}: {text[-1500:]}")
    return Reply(status="ok", artifacts=ncu_reading.artifacts(own, metrics, "cold", wall_s))
