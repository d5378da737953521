"""Chooses who measures: this machine's GPU, or the recorded measurements where there is none. Imports no GPU library."""

from __future__ import annotations

import ctypes
import pathlib
from importlib.resources import files
from importlib.util import find_spec

from ..events.errors import BadInput, ToolFailed
from ..events.model import RunRegistered
from ..events.reader import LedgerReader
from ..problems.contract import names
from .executor import Executor

DEVICES = ("auto", "cuda", "recorded", "cpu")
DEFAULT_RECORDING = "recordings/h200.v1/ledger.db"
DEFAULT_EXAMINATION = "recordings/h200.measurement.v1/problems.db"


def open_executor(device: str, recording: pathlib.Path | None, limits_s: dict[str, float] | None = None) -> Executor:
    """The executor for `--device`, with time limits by stage of its own; ToolFailed where `cuda` was asked for and there is none."""
    if device == "auto":
        device = "cuda" if measures(device, recording) else "recorded"
    if device == "recorded":
        from .recorded import RecordedExecutor

        return RecordedExecutor(recording or default_recording())
    if recording is not None:
        raise BadInput(f"--recording belongs to --device recorded; found --device {device}")
    if device == "cuda" and gpu_count() == 0:
        raise ToolFailed(
            "--device cuda: expected an NVIDIA GPU, found none (the driver library libcuda.so.1 is absent or sees no device). "
            "Check nvidia-smi, or use --device recorded."
        )
    from .local import LocalExecutor

    return LocalExecutor(device, limits_s=limits_s)


def measures(device: str, recording: pathlib.Path | None) -> bool:
    """Whether `--device` means measuring: `auto` does where a GPU can be used and no recording is named."""
    if device != "auto":
        return device != "recorded"
    # Without torch a GPU is of no use here: the light installation of an auditor answers from the recording.
    return recording is None and gpu_count() > 0 and find_spec("torch") is not None


def all_problems(device: str, recording: pathlib.Path | None) -> tuple[str, ...]:
    """What `all` means: every problem at hand; where a recording answers, those of them that its runs planned."""
    if measures(device, recording):
        return names()
    with LedgerReader(recording or default_recording()) as reader:
        runs = [stored.event for stored in reader.recorded() if isinstance(stored.event, RunRegistered)]
    held = {cell.problem for run in runs for cell in run.plan}
    return tuple(name for name in names() if name in held) or names()


def default_examination() -> pathlib.Path:
    """The examination that comes with gpusolver."""
    return pathlib.Path(str(files("gpusolver.problems") / DEFAULT_EXAMINATION))


def refuse_packaged(ledger: pathlib.Path) -> None:
    """BadInput where `ledger` is a file that comes with gpusolver: measurements that others check against are never written into."""
    packaged = default_examination().parent.parent.resolve()
    if ledger.resolve().is_relative_to(packaged):
        raise BadInput(
            f"--ledger {ledger}: expected a file of your own, found one of gpusolver's recordings, which are never written into."
        )


def default_recording() -> pathlib.Path:
    """The recording that comes with gpusolver."""
    return pathlib.Path(str(files("gpusolver.problems") / DEFAULT_RECORDING))


def gpu_count() -> int:
    """Devices that the driver sees; 0 without a driver. Makes no context."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def card_memory() -> int:
    """Bytes of memory of the first device that the driver sees; 0 without one. Makes no context."""
    if gpu_count() == 0:
        return 0
    cuda, device, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0), ctypes.c_size_t(0)
    if cuda.cuDeviceGet(ctypes.byref(device), 0) != 0 or cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device) != 0:
        return 0
    return size.value
