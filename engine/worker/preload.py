"""Imports what torch.compile needs before the first fork, and tries in a child whether CUDA survived it. Opens no context in its own process.

CUDA is unusable in a fork of a process that has called its runtime once, be it to count devices. In torch 2.11 one line
of the stack does: `torch/_inductor/runtime/benchmarking.py` asks `torch.cuda.is_available()` while it is imported. Here
that question is answered without the runtime; whether nothing else touches it, in whatever version of torch, the trial says.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.cuda

NOTE = "GPUSOLVER_WORKER_COMPILER"
"""Environment variable: how workers come by the compiler stack, for the facts that a run registers."""
PRELOADED = "imported before the fork"
DROPPED = "imported by each worker"
TRIAL_LIMIT_S = 30.0
_LONGEST_WHY = 400

# Imported by a first compiled call on a GPU, in torch 2.11 and 2.13; a name that another version lacks is left out.
_STACK = (
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.pallas",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.pad_mm",
    "torch._inductor.fx_passes.quantization",
    "torch._inductor.runtime.triton_heuristics",
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch.distributed.tensor.experimental",
    "torch.fx.experimental.validator",
)


class Trial(NamedTuple):
    """A child that tries the device, and where it tells how that went."""

    pid: int
    answer: int
    deadline: float


def compiler(stack: tuple[str, ...] = _STACK) -> None:
    """Import the stack. Raises what a module raises: a stack imported by half is no use to anyone."""
    with _no_runtime():
        for name in stack:
            if _known(name):
                importlib.import_module(name)


def begin_trial(probe: Callable[[], None] | None = None) -> Trial:
    """Fork a child that uses the device as a worker would; it ends by itself."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Trial(pid, reading, time.monotonic() + TRIAL_LIMIT_S)
    try:
        os.write(writing, _tried(probe or _use_device).encode(errors="replace") or b"\0")
    finally:
        os._exit(0)


def end_trial(trial: Trial) -> str:
    """Empty where CUDA works in a fork of this process, else what went wrong there."""
    ready = select.select([trial.answer], [], [], max(0.0, trial.deadline - time.monotonic()))[0]
    said = os.read(trial.answer, 4 * _LONGEST_WHY) if ready else f"no answer within {TRIAL_LIMIT_S:g} s".encode()
    os.close(trial.answer)
    with contextlib.suppress(ProcessLookupError):
        os.kill(trial.pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(trial.pid, 0)[1])
    return (
        said.decode(errors="replace").strip("\0") if said else f"the trial child ended without a word (exit {status})"
    )


def _tried(probe: Callable[[], None]) -> str:
    try:
        probe()
    except BaseException as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:_LONGEST_WHY]
    return ""


def _use_device() -> None:
    if torch.cuda._is_in_bad_fork():
        raise RuntimeError("CUDA was used before the fork")
    torch.cuda.init()
    found = int(torch.ones(2, device="cuda").sum().item())
    if found != 2:
        raise RuntimeError(f"the sum of two ones: expected 2, found {found}")
    with contextlib.suppress(Exception):  # built once, into the cache that every worker's kernels find at their start
        importlib.import_module("triton.runtime.driver").driver.active.get_current_target()


def _known(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a package above it is not there
        return False


@contextlib.contextmanager
def _no_runtime() -> Iterator[None]:
    """One device, as any worker for one sees; asked neither of the runtime nor of NVML. A context is refused."""
    kept: list[tuple[Any, str, Any]] = []
    for owner, name, value in (
        (torch._C, "_cuda_getDeviceCount", lambda: 1),
        (torch._C, "_cuda_init", _refuse),
        (torch.cuda, "_device_count_nvml", lambda: 1),
    ):
        if hasattr(owner, name):
            kept.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def _refuse() -> None:
    raise RuntimeError("a context was asked for while the compiler stack was imported")
